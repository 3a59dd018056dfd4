"""The workflows for a public forge: what they may, and whose code they run."""

import re

import yaml
from twisted.trial.unittest import SynchronousTestCase

from tests.integration.programs import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

READ = {"contents": "read"}

_ATTEST = {"id-token": "write", "attestations": "write"}

RIGHTS = {
    "codeql": {"security-events": "write", "contents": "read"},
    "attest": _ATTEST,
    "publish": {"contents": "write"},
    "images": {"packages": "write", **_ATTEST},
    "index": {"id-token": "write"},
}
"""Of jobs that may more than read."""


class WorkflowTests(SynchronousTestCase):
    def test_pinned(self) -> None:
        """Each action is pinned by a whole commit, with its version beside it; one
        action is the same everywhere.
        """
        found = set()
        for path in WORKFLOWS:
            for action in re.findall(r"uses: (.*)", path.read_text()):
                self.assertRegex(action, r"^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
                found.add(action)
        names = [action.partition("@")[0] for action in found]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_rights(self) -> None:
        """A workflow may read, and no more; a job that may more has no right but these.
        Whoever may write more than findings waits for whoever guards `release`.
        """
        for path in WORKFLOWS:
            workflow = yaml.safe_load(path.read_text())
            self.assertEqual(READ, workflow["permissions"])
            for name, job in workflow["jobs"].items():
                self.assertIn("timeout-minutes", job, name)
                rights = RIGHTS.get(name)
                self.assertEqual(rights, job.get("permissions"), name)
                guarded = job.get("environment") == "release"
                self.assertEqual(rights is not None and name != "codeql", guarded, name)
                if "secrets." in str(job):
                    self.assertTrue(guarded, f"{path.name}: {name} has a secret")

    def test_attested(self) -> None:
        """Nothing is published before it is attested. What is in the image, its base's
        maker says.
        """
        text = (ROOT / ".github/workflows/release.yml").read_text()
        jobs = yaml.safe_load(text)["jobs"]
        self.assertEqual(["build", "attest"], jobs["publish"]["needs"])
        for job, kinds in (
            ("attest", ("build-provenance", "sbom")),
            ("images", ("build-provenance",)),
        ):
            for kind in kinds:
                self.assertIn(f"actions/attest-{kind}@", str(jobs[job]["steps"]))

    def test_verified(self) -> None:
        """Each documented command that verifies names the owner: anybody may have a
        repository and a workflow of the same names.
        """
        page = (ROOT / "docs" / "supply-chain.md").read_text().replace("\\\n", "")
        commands = re.findall(r"^(?:gh|cosign) .*verify.*$", page, re.MULTILINE)
        programs = {command.partition(" ")[0] for command in commands}
        self.assertEqual({"gh", "cosign"}, programs)
        for command in commands:
            whose = r"--repo OWNER/|--certificate-identity https://github\.com/OWNER/"
            self.assertRegex(command, whose)

    def test_index(self) -> None:
        """Nothing is put under a name in PyPI that may be somebody else's."""
        text = (ROOT / ".github/workflows/release.yml").read_text()
        jobs = yaml.safe_load(text)["jobs"]
        [job] = [job for job in jobs.values() if "gh-action-pypi-publish" in str(job)]
        self.assertEqual("vars.PYPI == 'yes'", job["if"])

    def test_images(self) -> None:
        """The image is kept in the format that has health checks, by the name that it
        gets in the registry, and in a release it is not built on a base that moves.
        """
        script = (ROOT / "deploy/release/release.sh").read_text()
        workflow = (ROOT / ".github/workflows/release.yml").read_text()
        for text in (script, workflow):
            self.assertEqual({"docker"}, set(re.findall(r"(\w+)-archive:", text)))
        self.assertIn(":localhost/api-exporter:$version", script)
        self.assertRegex(script, r"RELEASE=yes deploy/container/build\.sh")

    def test_helm(self) -> None:
        """The chart is packaged by the version of helm that it was tried with."""
        files = [
            ROOT / ".github/workflows/release.yml",
            *(ROOT / "acceptance").glob("*.py"),
        ]
        pinned = r'helm\.sh/helm/v3/cmd/helm(?:@|", ")(v3[\d.]*)'
        found = [x for path in files for x in re.findall(pinned, path.read_text())]
        self.assertEqual(2, len(found))
        self.assertEqual(1, len(set(found)), found)

    def test_strangers(self) -> None:
        """A change that somebody proposes runs with nothing of ours."""
        for name in ("gates", "analysis"):
            text = (ROOT / f".github/workflows/{name}.yml").read_text()
            self.assertNotIn("pull_request_target", text)
            self.assertNotIn("secrets", text)

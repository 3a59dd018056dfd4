"""The permissions of the workflows for a public forge, and the code that they run."""

import re
import subprocess

import yaml
from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import new_folder
from tests.integration.programs import ROOT, environment

WORKFLOWS = {
    path.stem: path.read_text()
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
"""The text of each workflow."""

READ = {"contents": "read"}

_ATTEST = {"id-token": "write", "attestations": "write"}

RIGHTS = {
    "codeql": {"security-events": "write", "contents": "read"},
    "attest": _ATTEST,
    "publish": {"contents": "write"},
    "images": {"packages": "write", **_ATTEST},
    "index": {"id-token": "write"},
}
"""Permissions of jobs that may do more than read."""


class WorkflowTests(SynchronousTestCase):
    def test_pinned(self) -> None:
        """Each action is pinned by a commit hash, in one version everywhere."""
        found = set()
        for text in WORKFLOWS.values():
            for action in re.findall(r"uses: (.*)", text):
                self.assertRegex(action, r"^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
                found.add(action)
        names = [action.partition("@")[0] for action in found]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_rights(self) -> None:
        """Only listed jobs may write, with the approval of `release`."""
        for place, text in WORKFLOWS.items():
            workflow = yaml.safe_load(text)
            self.assertEqual(READ, workflow["permissions"])
            for name, job in workflow["jobs"].items():
                self.assertIn("timeout-minutes", job, name)
                rights = RIGHTS.get(name)
                self.assertEqual(rights, job.get("permissions"), name)
                guarded = job.get("environment") == "release"
                self.assertEqual(rights is not None and name != "codeql", guarded, name)
                if "secrets." in str(job):
                    self.assertTrue(guarded, f"{place}: {name} has a secret")

    def test_release(self) -> None:
        """Files are attested before they are published; PyPI needs the owner's word."""
        jobs = yaml.safe_load(WORKFLOWS["release"])["jobs"]
        self.assertEqual(["build", "attest"], jobs["publish"]["needs"])
        for job, kind in (
            ("attest", "build-provenance"),
            ("attest", "sbom"),
            ("images", "build-provenance"),
        ):
            self.assertIn(f"actions/attest-{kind}@", str(jobs[job]["steps"]))
        [job] = [job for job in jobs.values() if "gh-action-pypi-publish" in str(job)]
        self.assertEqual("vars.PYPI == 'yes'", job["if"])

    def test_sbom(self) -> None:
        """Only the job that keeps the SBOM names it, whichever job ends last."""
        steps = yaml.safe_load(WORKFLOWS["release"])["jobs"]["build"]["steps"]
        [script] = [step["run"] for step in steps if step.get("id") == "release"]
        for architecture, told in (("amd64", "sbom=x.cdx.json\n"), ("arm64", "")):
            folder = new_folder(self)
            release = folder / "dist/release"
            release.mkdir(parents=True)
            for name in ("x.cdx.json", "x-arm64"):
                (release / name).touch()
            text = f"make() {{ :; }}\n{script}".replace(
                "${{ matrix.architecture }}", architecture
            )
            output = folder / "output"
            output.touch()
            env = environment(GITHUB_OUTPUT=str(output))
            subprocess.run(["sh", "-ec", text], check=True, cwd=folder, env=env)
            self.assertEqual(told, output.read_text(), architecture)

    def test_verified(self) -> None:
        """Each documented verification names the owner of the repository."""
        page = (ROOT / "docs/install/README.md").read_text().replace("\\\n", "")
        commands = re.findall(r"^(?:gh|cosign) .*verify.*$", page, re.MULTILINE)
        programs = {command.partition(" ")[0] for command in commands}
        self.assertEqual({"gh", "cosign"}, programs)
        for command in commands:
            whose = r"--repo OWNER/|--certificate-identity https://github\.com/OWNER/"
            self.assertRegex(command, whose)

    def test_images(self) -> None:
        """The image's format has health checks; a release has a fixed base."""
        script = (ROOT / "deploy/release/release.sh").read_text()
        for text in (script, WORKFLOWS["release"]):
            self.assertEqual({"docker"}, set(re.findall(r"(\w+)-archive:", text)))
        self.assertIn(":localhost/api-exporter:$version", script)
        self.assertRegex(script, r"RELEASE=yes deploy/container/build\.sh")

    def test_hub(self) -> None:
        """The metadata for Artifact Hub has the layout that the workflow fills."""
        path = ROOT / "deploy/helm/artifacthub-repo.yml"
        self.assertIn(str(path.relative_to(ROOT)), WORKFLOWS["release"])
        told = yaml.safe_load(path.read_text())
        self.assertEqual({"repositoryID", "owners"}, {*told})
        self.assertEqual([{"name", "email"}], [{*one} for one in told["owners"]])

    def test_helm(self) -> None:
        """The chart is packaged by the tested version of helm."""
        texts = (WORKFLOWS["release"], (ROOT / "checks/acceptance/helm.py").read_text())
        pinned = r'helm\.sh/helm/v3(?:/cmd/helm@|", ")(v3[\d.]*)'
        [released], [tested] = (re.findall(pinned, text) for text in texts)
        self.assertEqual(tested, released)

    def test_strangers(self) -> None:
        """A workflow for a proposed change has no access to secrets."""
        for name in ("gates", "analysis"):
            self.assertNotRegex(WORKFLOWS[name], "pull_request_target|secrets")

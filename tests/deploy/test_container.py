"""Images and Compose files, as far as no engine is needed."""

import hashlib
import json
import re
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter._version import __version__
from api_exporter.settings.definitions import SETTINGS
from tests.deploy.addresses import addresses
from tests.deploy.programs import DEPLOY, documents, new_folder, run
from tests.integration.programs import environment

CONTAINER = DEPLOY / "container"


class ContainerTests(SynchronousTestCase):
    def test_build(self) -> None:
        """The engine receives version, revision and time; a release needs a digest."""
        script = CONTAINER / "build.sh"
        said = Path(self.mktemp()).resolve()
        engine = said.with_suffix(".sh")
        engine.write_text(f'#!/bin/sh\necho "$@" >>{said}\nexit 9\n')
        engine.chmod(0o755)
        base = "registry.example/python@sha256:0123"
        env = {
            **environment(BASE=base, ENGINE=str(engine), RELEASE="yes"),
            "SOURCE_COMMIT": "abc",
            "SOURCE_DATE_EPOCH": "1790000000",
        }
        run(script, "--tag", "x", "--isolation", "chroot", status=9, env=env)
        told = said.read_text()
        for option in (
            "--label org.opencontainers.image.created=2026-09-21T14:13:20Z",
            "--label org.opencontainers.image.revision=abc",
            f"--label org.opencontainers.image.version={__version__.public()} ",
            "--timestamp 1790000000",
            f"--build-arg BASE={base} --build-arg BUILDER={base}",
            "--isolation chroot .\n",
        ):
            self.assertIn(option, told)
        without = {**env, "BASE": "registry.example/python:3.13-slim"}
        refused = run(script, "--tag", "x", status=1, env=without)
        self.assertIn("registry.example/python:3.13-slim has no digest", refused)
        self.assertEqual(told, said.read_text())

    def test_modes(self) -> None:
        """A file that the image takes of the checkout has its mode by the image."""
        image = (CONTAINER / "Containerfile").read_text().rpartition("\nFROM ")[2]
        copied = re.findall(r"^COPY (?!--from=)(.*)", image, re.MULTILINE)
        self.assertNotEqual([], copied)
        for line in copied:
            self.assertTrue(line.startswith("--chmod=755 "), line)

    def test_settled(self) -> None:
        """Random values are removed from an image; all else stays the same."""
        folder = new_folder(self)
        kept = {"Hostname": "1234", "User": "65532:65532", "Healthcheck": {"Test": []}}
        made = {"config": kept, "container": "5678", "container_config": {}, "os": "x"}
        digest = "0" * 64
        (folder / digest).write_text(json.dumps(made))
        described = {"digest": f"sha256:{digest}", "size": 1}
        manifest = {"config": described, "layers": [{"digest": "sha256:1"}]}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        run(sys.executable, CONTAINER / "settle.py", folder.resolve())
        settled = json.loads((folder / "manifest.json").read_text())
        self.assertEqual(manifest["layers"], settled["layers"])
        [blob] = [path for path in folder.iterdir() if path.name != "manifest.json"]
        content = blob.read_bytes()
        self.assertEqual(blob.name, hashlib.sha256(content).hexdigest())
        self.assertEqual(
            {"digest": f"sha256:{blob.name}", "size": len(content)}, settled["config"]
        )
        del kept["Hostname"]
        self.assertEqual({"config": kept, "os": "x"}, json.loads(content))

    def test_production(self) -> None:
        """In production, Compose restarts, checks and restricts the container."""
        [compose] = documents(CONTAINER / "compose.production.yml")
        [service] = compose["services"].values()
        image = service["image"]
        self.assertIn(f":-{__version__.public()}}}", image)
        self.assertTrue(image.startswith(f"{addresses()['IMAGE']}:"), image)
        self.assertEqual("unless-stopped", service["restart"])
        self.assertEqual(
            ["CMD", "api-exporter", "--health"], service["healthcheck"]["test"]
        )
        self.assertTrue(service["read_only"])
        self.assertEqual(["ALL"], service["cap_drop"])
        self.assertEqual(["no-new-privileges:true"], service["security_opt"])
        text = (CONTAINER / "Containerfile").read_text()
        self.assertIn(f"USER {service['user']}\n", text)
        for port in service["ports"]:
            self.assertTrue(port.startswith("127.0.0.1:"), port)
        known = {setting.name for setting in SETTINGS}
        self.assertLessEqual(set(service["environment"]), known)
        [secret] = service["secrets"]
        self.assertEqual({secret}, set(compose["secrets"]))
        self.assertEqual(
            f"/run/secrets/{secret}", service["environment"]["UPSTREAM_API_TOKEN_FILE"]
        )

    def test_compose(self) -> None:
        """Compose mounts and builds what exists, and publishes to this machine only."""
        [compose] = documents(CONTAINER / "compose.yml")
        services = compose["services"]
        self.assertEqual({"api-exporter", "prometheus", "grafana"}, set(services))
        context = CONTAINER / services["api-exporter"]["build"]["context"]
        file = context / services["api-exporter"]["build"]["dockerfile"]
        self.assertTrue(file.samefile(CONTAINER / "Containerfile"))
        for service in services.values():
            for volume in service.get("volumes", []):
                source, _, mode = volume.split(":")
                self.assertTrue((CONTAINER / source).is_dir(), volume)
                self.assertEqual("ro", mode)
            for port in service["ports"]:
                self.assertTrue(port.startswith("127.0.0.1:"), port)
        [prometheus] = documents(DEPLOY / "prometheus/prometheus.yml")
        [job] = prometheus["scrape_configs"]
        [[target]] = [config["targets"] for config in job["static_configs"]]
        self.assertIn(target.partition(":")[0], services)

"""Image and Compose files, as far as they can be judged by reading."""

import re

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY
from tests.deploy.yaml_files import documents
from tests.integration.programs import ROOT

CONTAINER = DEPLOY / "container"
KUBERNETES = DEPLOY / "kubernetes"


class ContainerTests(SynchronousTestCase):
    def test_containerfile(self) -> None:
        """The image runs as a numeric user, has a health check and labels, and copies
        what exists and is not ignored.
        """
        text = (CONTAINER / "Containerfile").read_text()
        for pattern in (
            r"^USER [1-9]\d*:[1-9]\d*$",
            r"^HEALTHCHECK .* CMD \[.*\]$",
            r"^LABEL org\.opencontainers\.image\.",
        ):
            self.assertRegex(text, re.compile(pattern, re.MULTILINE))
        self.assertEqual(["$BUILDER AS build", "$BASE"], re.findall("FROM (.*)", text))
        ignored = (CONTAINER / "Containerfile.dockerignore").read_text().splitlines()
        for name in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE):
            self.assertTrue((ROOT / name).exists(), name)
            self.assertNotIn(name.partition("/")[0], ignored)

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

"""The specification of the program, point by point. Other tests say how it does it."""

import os
import re
import socket
import subprocess
import tomllib
from collections.abc import Callable
from configparser import ConfigParser, RawConfigParser

from twisted.trial.runner import TestLoader

from api_exporter.settings.definitions import SETTINGS
from api_exporter.version import Build
from tests.integration.exporter import GOOD, Answer, ExporterTestCase, Upstream
from tests.integration.programs import ROOT, environment, get, until

DEFAULTS = {
    "UPSTREAM_API_TOKEN": "",
    "UPSTREAM_API_URL": None,
    "LISTEN_ADDRESS": ":8080",
    "METRICS_PATH": "/metrics",
    "LOG_LEVEL": "info",
    "HTTP_TIMEOUT": "30s",
    "API_RETRY_ATTEMPTS": "3",
}
"""The specified settings. The first two are required: the token, or a file with it."""

UNIT = ("User", "RestrictAddressFamilies", "LimitNOFILE", "LimitNPROC")

CALLS = ("/api/health", "/api/peers")


class SpecificationTests(ExporterTestCase):
    def test_settings(self) -> None:
        """The settings and their defaults."""
        found = {one.name: one.default for one in SETTINGS if one.name in DEFAULTS}
        self.assertEqual(DEFAULTS, found)

    def test_upstream(self) -> None:
        """The exporter calls `/api/health` and `/api/peers` with the bearer token."""
        seen = set[tuple[str, str]]()
        upstream = Upstream(self, GOOD)

        def note(path: str) -> Callable[[str], Answer]:
            def answer(authorization: str) -> Answer:
                seen.add((path, authorization))
                del upstream.faults[path]
                return upstream.answer(path, authorization)

            return answer

        upstream.faults.update({path: note(path) for path in CALLS})
        settings = self.reading(upstream.url, UPSTREAM_API_TOKEN=GOOD)
        self.started(self.exporter, settings, "netbird_api_up 1.0")
        until(lambda: len(seen) == len(CALLS), "both calls")
        self.assertEqual({(path, f"Bearer {GOOD}") for path in CALLS}, seen)

    def test_paths(self) -> None:
        """`/health`, METRICS_PATH, and profiles with `--enable-pprof`."""
        profiles = ("/debug/pprof/heap", "/debug/pprof/profile?seconds=1")
        for command, status in (
            ([*self.exporter, "--demo"], 404),
            ([*self.twistd, "--demo", "--enable-pprof"], 200),
        ):
            running = self.serving(command, self.settings(METRICS_PATH="/other"))
            for path in ("/health", "/other"):
                self.assertEqual(200, get(self.url(path))[0], path)
            self.assertEqual(404, get(self.url("/metrics"))[0])
            for path in profiles:
                self.assertEqual(status, get(self.url(path))[0], path)
            self.assert_stops(running)

    def test_file(self) -> None:
        """A configuration file has lines `NAME=value` and comments."""
        file = self.directory / "config"
        file.write_text("# mine\nMETRICS_PATH=/other\n\nDEMO_PEERS=20\n")
        file.chmod(0o640)
        settings = self.settings()
        running = self.serving([*self.twistd, "--demo", "--config", "config"], settings)
        self.assertEqual(200, get(self.url("/other"))[0])
        self.assert_stops(running)

    def test_failures(self) -> None:
        """Four failures of the start differ: setting, file, port, permission."""
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        port = taken.getsockname()[1]
        file = self.directory / "config"
        file.write_text("no equals sign\n")
        url = {"UPSTREAM_API_URL": "http://127.0.0.1:1"}
        token = {"UPSTREAM_API_TOKEN": GOOD}
        forbidden = {"LISTEN_ADDRESS": "unix:/proc/api-exporter.sock"}
        for arguments, settings, status, words in (
            ([], url, 78, "UPSTREAM_API_TOKEN"),
            (["--config", "config"], {**url, **token}, 78, "config:1: "),
            ([], {**url, **token, "LISTEN_ADDRESS": f"127.0.0.1:{port}"}, 1, "in use"),
            ([], {**url, **token, **forbidden}, 1, "unix:/proc/api-exporter.sock"),
        ):
            for command in (self.exporter, self.twistd):
                ended = self.ended([*command, *arguments], environment(**settings))
                self.assertEqual(status, ended.returncode, ended)
                [line] = ended.stderr.splitlines()
                self.assertIn(words, line)

    def test_version(self) -> None:
        """`--version` prints version, commit and time of the build."""
        found = self.ended([*self.exporter, "--version"], environment())
        self.assertRegex(found.stdout, r"^api-exporter \d+\.\d+\.\d+\S*( \S+ \S+)?\n$")
        build = Build(version="1.0.0", commit="abc", built="2026-01-01T00:00:00Z")
        self.assertEqual("api-exporter 1.0.0 abc 2026-01-01T00:00:00Z", str(build))

    def test_tree(self) -> None:
        """The top level, the packages, the plugin and the test of the peer exporter."""
        for name in ("api_exporter", "deploy", "tests", "twisted/plugins"):
            self.assertTrue((ROOT / name).is_dir(), name)
        self.assertEqual(["plugins"], os.listdir(ROOT / "twisted"))
        tomllib.loads((ROOT / "pyproject.toml").read_text())
        setup = ConfigParser(interpolation=None)
        setup.read(ROOT / "setup.cfg")
        needed = re.findall(r"(?m)^[\w-]+", setup["options"]["install_requires"])
        packages = {"twisted", "treq", "prometheus-client", "incremental"}
        self.assertLessEqual(packages, set(needed))
        found = TestLoader().loadByName("tests.collectors.test_peers.TestPeerExporter")
        self.assertGreater(found.countTestCases(), 0)

    def test_unit(self) -> None:
        """The unit's user, address families and limits; the modes of its settings."""
        unit = RawConfigParser(strict=False, allow_no_value=True)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        systemd = ROOT / "deploy/systemd"
        drop_ins = systemd / "api-exporter.service.d"
        unit.read([systemd / "api-exporter.service", drop_ins / "hardened.conf"])
        service = unit["Service"]
        self.assertEqual(
            ("api-exporter", "AF_UNIX AF_INET AF_INET6", "65536", "4096"),
            tuple(
                service[name]
                for name in (
                    "User",
                    "RestrictAddressFamilies",
                    "LimitNOFILE",
                    "LimitNPROC",
                )
            ),
        )
        install = (ROOT / "deploy/install.sh").read_text()
        self.assertIn('install -d -m 750 -o root -g "$group" "$settings"', install)
        self.assertIn('chmod 640 "$settings/config"', install)

    def test_firewall(self) -> None:
        """Three private ranges may scrape."""
        for name in ("nftables/api-exporter.nft", "iptables/api-exporter.sh"):
            text = (ROOT / "deploy" / name).read_text()
            [ranges] = re.findall(r"ranges ?= ?(.*)", text)
            self.assertEqual(
                ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
                re.findall(r"[\d./]+", ranges),
            )

    def test_release(self) -> None:
        """The names of the files of a release have version and architecture."""
        release = ROOT / "deploy/release"
        text = "".join(
            (release / name).read_text() for name in ("release.sh", "seal.sh")
        )
        for name in ("api-exporter-linux-$", "$version-image-linux-$", "SHA256SUMS"):
            self.assertIn(name, text)
        shell = subprocess.run(
            ["sh", ROOT / "deploy/debian/version.sh", "1.2.3rc1"],
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual("1.2.3~rc1\n", shell.stdout)

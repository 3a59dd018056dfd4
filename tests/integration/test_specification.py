"""The specification of the program, point by point. Other tests say how it does it."""

import os
import re
import signal
import socket
import tomllib
from configparser import ConfigParser, RawConfigParser

from twisted.trial.runner import TestLoader

from api_exporter.settings.definitions import SETTINGS
from tests.integration.exporter import GOOD, ExporterTestCase, Upstream
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


class SpecificationTests(ExporterTestCase):
    def test_settings(self) -> None:
        """The settings and their defaults."""
        found = {one.name: one.default for one in SETTINGS if one.name in DEFAULTS}
        self.assertEqual(DEFAULTS, found)

    def test_program(self) -> None:
        """The exporter calls `/api/health` and `/api/peers` with the bearer token. It
        has `/health`, METRICS_PATH and, with `--enable-pprof`, profiles. Its file has
        lines `NAME=value` and comments, which SIGHUP reads again.
        """
        upstream = Upstream(self)
        file = self.directory / "config"
        text = f"# mine\nUPSTREAM_API_URL={upstream.url}\n\nMETRICS_PATH=/other\n"
        file.write_text(text)
        file.chmod(0o640)
        command = [*self.twistd, "--enable-pprof", "--config", "config"]
        environ = self.settings(UPSTREAM_API_TOKEN=GOOD)
        running = self.started(command, environ, "", "/health")
        calls = {(path, f"Bearer {GOOD}") for path in ("/api/health", "/api/peers")}
        until(lambda: calls <= {*upstream.asked}, "both calls")
        for path, status in (
            *(("/health", 200), ("/other", 200), ("/metrics", 404)),
            *(("/debug/pprof/heap", 200), ("/debug/pprof/profile?seconds=1", 200)),
        ):
            self.assertEqual(status, get(self.url(path))[0], path)
        file.write_text(f"{text}LOG_LEVEL=debug\n")
        running.process.send_signal(signal.SIGHUP)
        changed = "reloaded settings: changed LOG_LEVEL"
        until(lambda: changed in running.said(), "a reload")
        get(self.url("/health"))
        until(lambda: " debug GET /health " in running.said(), "a line for debugging")
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
            tuple(service[name] for name in UNIT),
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

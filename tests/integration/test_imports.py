"""The modules that a command imports: what it does not need costs no memory."""

import sys

from api_exporter.version import this_build
from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import environment

OPTIONAL = {
    *("demo", "logs", "web.lookup", "web.pprof"),
    *("access.authorization", "access.tls", "yaml"),
}
"""Modules that only a setting or an option needs."""

SERVICE = """
import sys
from twisted.scripts.twistd import ServerOptions
from api_exporter.cli import makeService
from api_exporter.settings.options import Options
options = Options()
options.parent = ServerOptions()
options.parent.parseOptions(["--nodaemon"])
options.parseOptions(sys.argv[1:])
makeService(options)
"""
"""A program that makes all services, and starts none."""


class ImportTests(ExporterTestCase):
    def imported(self, *command: str, begin: str = "", **settings: str) -> set[str]:
        """Return the modules that a Python program imports.

        Args:
            begin: the beginning of its output.
        """
        environ = environment(**settings)
        ended = self.ended([sys.executable, "-X", "importtime", *command], environ)
        self.assertEqual(0, ended.returncode, ended.stderr)
        self.assertTrue(ended.stdout.startswith(begin), ended.stdout)
        lines = ended.stderr.splitlines()
        names = {line.rpartition("|")[2].strip() for line in lines}
        return {name.removeprefix("api_exporter.") for name in names}

    def test_commands(self) -> None:
        """Commands import neither Twisted nor the service without need."""
        version = f"{this_build()}\n"
        health = ("-c", "from api_exporter.checking import health")
        late = {"twisted.internet.reactor", "OpenSSL", "service"}
        slow = {"twisted", "msgspec", "incremental", "idna", "asyncio"}
        for command, begin, needed, needless in (
            (("-m", "api_exporter", "--version"), version, "version", {"twisted"}),
            (health, "", "checking.health", slow),
            ((*self.daemon[1:], "--version"), version, "settings.options", late),
            ((*self.daemon[1:], "--help"), "Usage:", "settings.options", late),
        ):
            found = self.imported(*command, begin=begin)
            self.assertIn(needed, found)
            self.assertEqual(set(), needless & found, command)

    def test_service(self) -> None:
        """An optional feature is imported only if a setting enables it."""
        accounts = self.directory / "accounts"
        accounts.mkdir()
        (accounts / "acme.conf").write_text("UPSTREAM_API_TOKEN=secret\n")
        tokens, web = self.directory / "tokens", self.directory / "web.yml"
        tokens.write_text("a-token-that-opens-all")
        web.touch()
        needed = {"UPSTREAM_API_URL": "http://10.0.0.1", "UPSTREAM_API_TOKEN": "secret"}
        for option, settings, expected in (
            ("", {}, set()),
            ("--demo", {}, {"demo", "logs"}),
            ("--enable-pprof", {}, {"web.pprof"}),
            ("", {"EVENTS_FILE": "x"}, {"logs"}),
            ("", {"ACCESS_LOG_METRICS": "true"}, {"logs"}),
            ("", {"LOOKUP": "true"}, {"web.lookup"}),
            ("", {"ACCOUNTS_DIR": str(accounts)}, set()),
            ("", {"WEB_BEARER_TOKENS_FILE": str(tokens)}, {"access.authorization"}),
            ("", {"WEB_CONFIG_FILE": str(web)}, {"access.authorization", "yaml"}),
        ):
            program = ["-c", SERVICE, *option.split()]
            found = self.imported(*program, **needed, **settings)
            self.assertEqual(expected, OPTIONAL & found, (option, settings))
        self.assertFalse((self.directory / "x").exists())

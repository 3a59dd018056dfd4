"""Misspelt names of settings: which are found, and which are left alone."""

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.definitions import BY_NAME
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.loader import load
from api_exporter.settings.options import Options
from api_exporter.settings.spelling import distance, meant, misspelt
from tests.logbook import logbook

REQUIRED = {"UPSTREAM_API_URL": "https://10.0.0.1", "UPSTREAM_API_TOKEN": "secret"}

OTHERS = [
    "ALL_PROXY",
    "APP_ENV",
    "COLORTERM",
    "COLUMNS",
    "CREDENTIALS_DIRECTORY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DEBUG",
    "DISPLAY",
    "EDITOR",
    "ENV",
    "GODEBUG",
    "GOMAXPROCS",
    "GRAFANA_URL",
    "HISTFILE",
    "HOME",
    "HOSTNAME",
    "HTTPS_PROXY",
    "HTTP_PORT",
    "HTTP_PROXY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "KUBERNETES_PORT",
    "KUBERNETES_SERVICE_HOST",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LOGNAME",
    "LOG_FILE",
    "LS_COLORS",
    "MALLOC_ARENA_MAX",
    "METRICS_PORT",
    "MAIL",
    "NETBIRD_API_TOKEN",
    "NETBIRD_API_URL",
    "NOTIFY_SOCKET",
    "NO_PROXY",
    "OLDPWD",
    "PAGER",
    "PATH",
    "POD_NAME",
    "POD_NAMESPACE",
    "PROMETHEUS_URL",
    "PWD",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "PYTHON_VERSION",
    "RUNTIME_DIRECTORY",
    "SHELL",
    "SHLVL",
    "SOURCE_DATE_EPOCH",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "START",
    "STATE_DIRECTORY",
    "SYSTEMD_EXEC_PID",
    "TERM",
    "TMPDIR",
    "TZ",
    "UPSTREAM_HOST",
    "USER",
    "VIRTUAL_ENV",
    "WATCHDOG_USEC",
    "XDG_RUNTIME_DIR",
    "_",
]
"""Variables that machines, containers and other programs have."""


class DistanceTests(SynchronousTestCase):
    def test_mistakes(self) -> None:
        """A letter more, less or other is one mistake, and so is a swapped pair."""
        for a, b, expected in (
            ("", "", 0),
            ("ab", "", 2),
            ("FILE", "FLIE", 1),
            ("FILE", "FIL", 1),
            ("FILE", "FILES", 1),
            ("FILE", "PILE", 1),
            ("FILE", "EFIL", 2),
            ("SHELL", "SHARD", 3),
        ):
            self.assertEqual(expected, distance(a, b), (a, b))
            self.assertEqual(expected, distance(b, a), (a, b))

    @given(st.text("ABC", max_size=6), st.text("ABC", max_size=6))
    def test_bounds(self, a: str, b: str) -> None:
        """It is 0 for equal words alone, and at most the longer one's letters."""
        found = distance(a, b)
        self.assertEqual(a == b, found == 0)
        self.assertLessEqual(abs(len(a) - len(b)), found)
        self.assertLessEqual(found, max(len(a), len(b)))


class MeantTests(SynchronousTestCase):
    def test_each(self) -> None:
        """One mistake in any setting's name is found, and the setting is named."""
        for name in BY_NAME:
            for at in range(len(name)):
                wrong = {
                    name[:at] + name[at + 1 :],
                    name[:at] + "Q" + name[at:],
                    name[:at] + name[at : at + 2][::-1] + name[at + 2 :],
                }
                for misnamed in wrong - BY_NAME.keys():
                    self.assertIsNotNone(meant(misnamed), misnamed)
            self.assertIsNone(meant(name))
            self.assertEqual(name, meant(name.lower()))

    def test_two(self) -> None:
        """Two mistakes are found in a long name, but not in a short one."""
        for name, setting in (
            ("WEB_CONFIG_FLIE", "WEB_CONFIG_FILE"),
            ("WEB_CONFGI_FLIE", "WEB_CONFIG_FILE"),
            ("UPSTREAM_API_URI", "UPSTREAM_API_URL"),
            ("COLECTOR", "COLLECTORS"),
            ("SHARDS", "SHARD"),
            ("SHARES", None),
            ("UPSTREAM_URL", None),
        ):
            self.assertEqual(setting, meant(name), name)

    def test_others(self) -> None:
        """What other programs are told by their variables is no mistake."""
        self.assertEqual({}, misspelt(OTHERS))


class LoadTests(SynchronousTestCase):
    def test_environment(self) -> None:
        """A misspelt variable of the environment is a warning."""
        options = Options()
        options.parseOptions([])
        book = logbook(self)
        self.patch(os, "environ", {**os.environ, "WEB_CONFIG_FLIE": "/web.yml"})
        load(options, REQUIRED)
        told = "WEB_CONFIG_FLIE in the environment is not a setting: did you mean"
        self.assertEqual([f"warning {told} WEB_CONFIG_FILE?"], book.lines())

    def test_file(self) -> None:
        """A misspelt name in a configuration file is refused, others are not."""
        file = Path(self.mktemp())
        file.write_text("HTTPS_PROXY=\nWEB_CONFIG_FLIE=x\nCOLLECTRS=peers\n")
        options = Options()
        options.parseOptions(["--config", str(file)])
        with self.assertRaises(ConfigurationError) as raised:
            load(options, REQUIRED)
        self.assertEqual(
            [
                f"{file}:2: WEB_CONFIG_FLIE is not a setting: did you mean"
                " WEB_CONFIG_FILE?",
                f"{file}:3: COLLECTRS is not a setting: did you mean COLLECTORS?",
            ],
            raised.exception.problems,
        )
        self.assertFalse(raised.exception.retryable)

"""Misspelt names of settings, and names of other programs."""

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.definitions import SETTING_BY_NAME
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.loader import load
from api_exporter.settings.spelling import closest, hint_for_options
from tests.logbook import logbook
from tests.settings.test_options import parsed

REQUIRED = {"UPSTREAM_API_URL": "https://10.0.0.1", "UPSTREAM_API_TOKEN": "secret"}

OTHERS = (
    "DBUS_SESSION_BUS_ADDRESS HTTPS_PROXY HTTP_PORT HTTP_PROXY LISTEN_FDS LOGNAME"
    " LOG_FILE METRICS_PORT NETBIRD_API_TOKEN NETBIRD_API_URL NO_PROXY SHELL"
    " SSL_CERT_FILE START UPSTREAM_HOST XDG_RUNTIME_DIR _"
)
"""Variables of machines and other programs whose names are similar to settings."""


class MeantTests(SynchronousTestCase):
    def test_each(self) -> None:
        """A single mistake in any setting's name is found."""
        for name in SETTING_BY_NAME:
            for at in range(len(name)):
                wrong = {
                    name[:at] + name[at + 1 :],
                    name[:at] + "Q" + name[at:],
                    name[:at] + name[at : at + 2][::-1] + name[at + 2 :],
                }
                for misnamed in wrong - SETTING_BY_NAME.keys():
                    self.assertIsNotNone(closest(misnamed), misnamed)
            self.assertIsNone(closest(name))
            self.assertEqual(name, closest(name.lower()))

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
            self.assertEqual(setting, closest(name), name)

    def test_others(self) -> None:
        """Variables of other programs are not mistakes."""
        self.assertEqual([], [name for name in OTHERS.split() if closest(name)])


class OptionsTests(SynchronousTestCase):
    def test_foreign(self) -> None:
        """An option of another program has the name of the setting here."""
        for option, setting in (
            ("--web.listen-address=:1", "LISTEN_ADDRESS"),
            ("--web.telemetry-path=/m", "METRICS_PATH"),
            ("--web.config.file=web.yml", "WEB_CONFIG_FILE"),
            ("--web.max-requests=40", "MAX_CONNECTIONS"),
            ("-url", "UPSTREAM_API_URL"),
            ("-token", "UPSTREAM_API_TOKEN"),
        ):
            self.assertIn(f"use the setting {setting},", hint_for_options([option]))


class LoadTests(SynchronousTestCase):
    def test_environment(self) -> None:
        """A misspelt variable of the environment is a warning."""
        self.patch(os, "environ", {**os.environ, "WEB_CONFIG_FLIE": "/web.yml"})
        options = parsed()
        book = logbook(self)
        load(options, REQUIRED)
        reported = "WEB_CONFIG_FLIE in the environment is not a setting: did you mean"
        self.assertEqual([f"warning {reported} WEB_CONFIG_FILE?"], book.lines())

    def test_file(self) -> None:
        """A misspelt name in a configuration file is refused; others are accepted."""
        file = Path(self.mktemp()).absolute()
        file.write_text("HTTPS_PROXY=\nWEB_CONFIG_FLIE=x\nCOLLECTRS=peers\n")
        options = parsed("--config", str(file))
        raised = self.assertRaises(ConfigurationError, load, options, REQUIRED)
        words = "is not a setting: did you mean"
        self.assertEqual(
            [
                f"{file}:2: WEB_CONFIG_FLIE {words} WEB_CONFIG_FILE?",
                f"{file}:3: COLLECTRS {words} COLLECTORS?",
            ],
            raised.problems,
        )
        self.assertFalse(raised.retryable)

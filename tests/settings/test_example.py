"""The file that `--settings` prints, read by the exporter and by systemd."""

import re
import shlex
from pathlib import Path

from msgspec.structs import asdict
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.configuration_file import load_file
from api_exporter.settings.definitions import SETTINGS
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.example import example_file
from api_exporter.settings.token import Token
from api_exporter.subjects.table import COLLECTORS
from tests.deploy.programs import new_folder, run
from tests.integration.programs import program

GENERATOR = Path(
    "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator"
)
"""A program that prints environment.d, with the parser of EnvironmentFile=."""

REQUIRED = ["UPSTREAM_API_URL", "UPSTREAM_API_TOKEN"]

FILLED_IN = {"UPSTREAM_API_URL": "https://a.example", "UPSTREAM_API_TOKEN": "nbp_x"}
"""The values of the settings that the example leaves empty."""


def loaded(environ: dict[str, str]) -> tuple[object, ...]:
    """Return the settings as comparable values, with the required ones filled in."""
    assert not any(environ.get(name) for name in REQUIRED), environ
    checked = read_settings({**environ, **FILLED_IN})
    [account] = checked.accounts.values()
    values = {**asdict(account), **asdict(checked), "accounts": None, "name": None}
    return tuple(x.reveal() if isinstance(x, Token) else x for x in values.values())


class EnvExampleTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.text = example_file()
        self.example, self.all = Path(self.mktemp()), Path(self.mktemp())
        self.example.write_text(self.text)
        everything = re.sub("^#([A-Z_]+=)", r"\1", self.text, flags=re.MULTILINE)
        self.all.write_text(everything)

    def test_collectors(self) -> None:
        """The example lists the collectors that the default excludes."""
        text = self.text.replace("\n# ", " ")
        [named] = re.findall("`default` means all except(.*?);", text)
        off = [collector.name for collector in COLLECTORS if not collector.default]
        self.assertEqual(off, re.findall(r"`(\w+)`", named))

    def test_names(self) -> None:
        """The example has each setting once; all but the required ones are comments."""
        names = re.findall(r"^#?([A-Z_]+)=", self.text, re.MULTILINE)
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual({setting.name for setting in SETTINGS}, set(names))
        self.assertEqual(REQUIRED, re.findall(r"^([A-Z_]+)=", self.text, re.MULTILINE))

    def test_refused(self) -> None:
        """The example names no NetBird: the exporter does not start with it."""
        environ = load_file(self.example)
        error = self.assertRaises(ConfigurationError, read_settings, environ)
        named = [problem.partition(" is not set")[0] for problem in error.problems]
        self.assertEqual((REQUIRED, False), (named, error.retryable))

    def test_readers(self) -> None:
        """Systemd and --config read the same values; comments have the defaults."""
        wanted = loaded(load_file(self.example))
        self.assertEqual(tuple(FILLED_IN.values()), wanted[3:5])
        self.assertEqual(wanted, loaded(load_file(self.all)))
        for file in (self.example, self.all):
            self.assertEqual(wanted, self.by_systemd(file))

    def by_systemd(self, file: Path) -> tuple[object, ...]:
        program(str(GENERATOR))
        home = new_folder(self)
        (home / "environment.d").mkdir()
        (home / "environment.d/api-exporter.conf").symlink_to(file.absolute())
        printed = run(GENERATOR, env={"XDG_CONFIG_HOME": str(home)})
        pairs = (one.partition("=") for one in shlex.split(printed))
        return loaded({name: value for name, _, value in pairs})

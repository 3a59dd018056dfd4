"""The files of both logs, in the settings of one and of several accounts."""

from pathlib import Path

from api_exporter.settings.definitions import Settings
from api_exporter.settings.environment import read_settings
from api_exporter.settings.parsers import STANDARD_OUTPUT
from tests.settings.test_accounts import ONE, FolderTestCase


class OneTests(FolderTestCase):
    def one(self, **environ: str) -> Settings:
        return read_settings(ONE | environ)

    def problem(self, **environ: str) -> str:
        """Return the only error."""
        [found] = self.problems(**ONE | {"ACCOUNTS_DIR": ""} | environ)
        return found

    def test_cursor(self) -> None:
        """The cursor is next to the file, unless a setting names another place."""
        names = {"EVENTS_FILE": "-", "EVENTS_CURSOR_FILE": "/var/lib/e"}
        for environ, cursor, output in (
            ({}, None, ""),
            ({"EVENTS_FILE": "/var/log/e"}, Path("/var/log/e.cursor"), ""),
            (names, Path("/var/lib/e"), "EVENTS_FILE"),
        ):
            settings = self.one(**environ)
            account = settings.accounts[""]
            self.assertEqual(not environ, account.events_file is None)
            if cursor is not None:
                self.assertEqual(cursor, account.events_cursor)
            self.assertEqual(output, settings.output_setting)

    def test_access_log(self) -> None:
        """The access log is requested if it is written or counted."""
        file, cursor = Path("/var/log/a"), Path("/var/lib/a")
        names = {"ACCESS_LOG_FILE": "-", "ACCESS_LOG_CURSOR_FILE": str(cursor)}
        for environ, path, position, reads in (
            ({}, None, None, False),
            ({"ACCESS_LOG_METRICS": "true"}, None, None, True),
            ({"ACCESS_LOG_FILE": str(file)}, file, Path(f"{file}.cursor"), True),
            (names, STANDARD_OUTPUT, cursor, True),
        ):
            settings = self.one(**environ)
            account = settings.accounts[""]
            self.assertEqual(path, account.access_log_file, environ)
            if path is not None:
                self.assertEqual(position, account.access_log_cursor, environ)
            self.assertEqual(reads, account.reads_access_log, environ)
            self.assertEqual(2, account.access_log_requests_per_minute)
            output = "ACCESS_LOG_FILE" if path == STANDARD_OUTPUT else ""
            self.assertEqual(output, settings.output_setting)

    def test_refused(self) -> None:
        """An error names the setting, its value and what is allowed."""
        one, other = {"EVENTS_FILE": "/nowhere/a"}, {"ACCESS_LOG_FILE": "/nowhere/a"}
        rows = "ACCESS_LOG_REQUESTS_PER_MINUTE"
        own = "each needs a file of its own"
        for environ, expected in (
            (
                {"EVENTS_FILE": "-"},
                "EVENTS_CURSOR_FILE is not set: where EVENTS_FILE is -",
            ),
            ({"ACCESS_LOG_FILE": "-"}, "ACCESS_LOG_CURSOR_FILE is not set: where"),
            (
                {"ACCESS_LOG_METRICS": "some"},
                "ACCESS_LOG_METRICS: 'some' .*true or false",
            ),
            ({rows: "0"}, f"{rows}: '0' .*a whole number from 1 to 60"),
            ({rows: "61"}, f"{rows}: '61' .*a whole number from 1 to 60"),
            ({rows: "two"}, f"{rows}: 'two' .*a whole number from 1 to 60"),
            (
                one | {"EVENTS_CURSOR_FILE": "/nowhere/./a"},
                f"EVENTS_FILE and EVENTS_CURSOR_FILE: {own}, not '/nowhere/a'$",
            ),
            (
                one | other | {"ACCESS_LOG_CURSOR_FILE": "/nowhere/c"},
                f"EVENTS_FILE and ACCESS_LOG_FILE: {own}",
            ),
        ):
            self.assertRegex(self.problem(**environ), f"^{expected}")

    def test_only_read(self) -> None:
        """Two settings may name one file that is only read."""
        file = str(self.write("web.yml"))
        self.one(WEB_CONFIG_FILE=file, WEB_BEARER_TOKENS_FILE=file)

    def test_resource_off(self) -> None:
        """A resource that is written or counted must not be `off`."""
        for setting, resource in (
            ("EVENTS_FILE", "events"),
            ("ACCESS_LOG_FILE", "access_log"),
            ("ACCESS_LOG_METRICS", "access_log"),
        ):
            value = "true" if setting.endswith("METRICS") else "/nowhere/a"
            off = {"REFRESH_INTERVALS": f"{resource}=off"}
            self.assertEqual(
                f"REFRESH_INTERVALS: '{resource}=off' is not allowed where"
                f" {setting} is set: {resource} must have an interval",
                self.problem(**{setting: value}, **off),
            )
            self.one(**off)


class SeveralTests(FolderTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.environ = ONE | {"ACCOUNTS_DIR": str(self.folder)}

    def test_relative(self) -> None:
        """Paths are relative to the account's file, and `-` is not a path."""
        self.write("acme.conf", "EVENTS_FILE=acme.jsonl")
        self.write("beta.conf", "EVENTS_FILE=-", "EVENTS_CURSOR_FILE=beta.cursor")
        self.write("gamma.conf", "EVENTS_FILE=-", "EVENTS_CURSOR_FILE=gamma.cursor")
        found = self.accounts(**self.environ)
        folder = self.folder
        self.assertEqual(folder / "acme.jsonl", found["acme"].events_file)
        self.assertEqual(STANDARD_OUTPUT, found["beta"].events_file)
        self.assertEqual(folder / "beta.cursor", found["beta"].events_cursor)

    def test_shared(self) -> None:
        """Two accounts with the same file or cursor are an error."""
        for name in ("acme", "beta"):
            self.write(f"{name}.conf")
        both = "{0} of acme and {0} of beta: each needs a file of its own, not {1!r}"
        file = {"EVENTS_FILE": "/nowhere/e"}
        cursor = {"EVENTS_CURSOR_FILE": "/nowhere/c"}
        self.assertEqual(
            [
                both.format("EVENTS_FILE", "/nowhere/e"),
                both.format("EVENTS_CURSOR_FILE", "/nowhere/e.cursor"),
            ],
            self.problems(**self.environ, **file),
        )
        self.write("beta.conf", "EVENTS_FILE=/nowhere/f")
        [problem] = self.problems(**self.environ, **file, **cursor)
        self.assertIn("of its own, not '/nowhere/c'", problem)

    def test_access_log(self) -> None:
        """Each account has its own access log or none, despite the environment."""
        self.write("acme.conf", "ACCESS_LOG_FILE=acme.jsonl")
        self.write("beta.conf", "ACCESS_LOG_REQUESTS_PER_MINUTE=6")
        self.write("gamma.conf", "ACCESS_LOG_METRICS=false")
        found = self.accounts(**self.environ, ACCESS_LOG_METRICS="true")
        file = self.folder / "acme.jsonl"
        acme, beta, _ = found.values()
        self.assertEqual(file, acme.access_log_file)
        self.assertEqual(file.with_suffix(".jsonl.cursor"), acme.access_log_cursor)
        self.assertEqual(6, beta.access_log_requests_per_minute)
        reads = [account.reads_access_log for account in found.values()]
        self.assertEqual([True, True, False], reads)
        self.write("gamma.conf", "ACCESS_LOG_FILE=acme.jsonl")
        problem, _of_cursor = self.problems(**self.environ)
        self.assertIn("ACCESS_LOG_FILE of acme and ACCESS_LOG_FILE of gamma", problem)

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

    def test_off(self) -> None:
        """Without the setting, nothing is written or requested."""
        settings = self.one()
        self.assertIsNone(settings.accounts[""].events_file)
        self.assertEqual("", settings.output_setting)

    def test_cursor(self) -> None:
        """The cursor is next to the file, unless a setting names another place."""
        account = self.one(EVENTS_FILE="/var/log/e.jsonl").accounts[""]
        self.assertEqual(Path("/var/log/e.jsonl.cursor"), account.events_cursor)
        settings = self.one(EVENTS_FILE="-", EVENTS_CURSOR_FILE="/var/lib/e")
        self.assertEqual(Path("/var/lib/e"), settings.accounts[""].events_cursor)
        self.assertEqual("EVENTS_FILE", settings.output_setting)

    def test_cursor_required(self) -> None:
        """Standard output needs a setting for the cursor."""
        expected = "EVENTS_CURSOR_FILE is not set: where EVENTS_FILE is -, it must be"
        self.assertTrue(self.problem(EVENTS_FILE="-").startswith(expected))

    def test_same(self) -> None:
        """The log and its cursor must not be the same file."""
        self.assertEqual(
            "EVENTS_FILE and EVENTS_CURSOR_FILE: each needs a file of its own, "
            "not '/nowhere/e'",
            self.problem(EVENTS_FILE="/nowhere/e", EVENTS_CURSOR_FILE="/nowhere/./e"),
        )

    def test_access_log(self) -> None:
        """The access log is requested if it is written or counted."""
        account = self.one().accounts[""]
        self.assertEqual(
            (None, False), (account.access_log_file, account.reads_access_log)
        )
        account = self.one(ACCESS_LOG_METRICS="true").accounts[""]
        self.assertEqual(
            (None, True), (account.access_log_file, account.reads_access_log)
        )
        self.assertEqual(2, account.access_log_requests_per_minute)
        account = self.one(ACCESS_LOG_FILE="/var/log/a").accounts[""]
        self.assertEqual(Path("/var/log/a.cursor"), account.access_log_cursor)
        self.assertTrue(account.reads_access_log)
        cursor = {"ACCESS_LOG_CURSOR_FILE": "/var/lib/a"}
        settings = self.one(ACCESS_LOG_FILE="-", **cursor)
        self.assertEqual(Path("/var/lib/a"), settings.accounts[""].access_log_cursor)
        self.assertEqual("ACCESS_LOG_FILE", settings.output_setting)

    def test_access_log_refused(self) -> None:
        """An error names the setting, its value and what is allowed."""
        same = {"EVENTS_FILE": "/nowhere/a", "ACCESS_LOG_FILE": "/nowhere/a"}
        rows = "ACCESS_LOG_REQUESTS_PER_MINUTE"
        for environ, expected in (
            ({"ACCESS_LOG_FILE": "-"}, "ACCESS_LOG_CURSOR_FILE is not set: where"),
            (
                {"ACCESS_LOG_METRICS": "some"},
                "ACCESS_LOG_METRICS: 'some' .*true or false",
            ),
            ({rows: "0"}, f"{rows}: '0' .*a whole number from 1 to 60"),
            ({rows: "61"}, f"{rows}: '61' .*a whole number from 1 to 60"),
            ({rows: "two"}, f"{rows}: 'two' .*a whole number from 1 to 60"),
            (
                {**same, "ACCESS_LOG_CURSOR_FILE": "/nowhere/c"},
                "EVENTS_FILE and ACCESS_LOG_FILE: each needs a file of its own",
            ),
        ):
            self.assertRegex(self.problem(**environ), f"^{expected}")

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
        folder = self.folder.absolute()
        self.assertEqual(folder / "acme.jsonl", found["acme"].events_file)
        self.assertEqual(STANDARD_OUTPUT, found["beta"].events_file)
        self.assertEqual(folder / "beta.cursor", found["beta"].events_cursor)

    def test_shared(self) -> None:
        """Two accounts with the same file or cursor are an error."""
        for name in ("acme", "beta"):
            self.write(f"{name}.conf")
        both = "{0} of acme and {0} of beta: each needs a file of its own, not {1!r}"
        self.assertEqual(
            [
                both.format("EVENTS_FILE", "/nowhere/e"),
                both.format("EVENTS_CURSOR_FILE", "/nowhere/e.cursor"),
            ],
            self.problems(**self.environ, EVENTS_FILE="/nowhere/e"),
        )
        self.write("beta.conf", "EVENTS_FILE=/nowhere/f")
        cursor = {"EVENTS_FILE": "/nowhere/e", "EVENTS_CURSOR_FILE": "/nowhere/c"}
        [problem] = self.problems(**self.environ, **cursor)
        self.assertIn("of its own, not '/nowhere/c'", problem)

    def test_access_log(self) -> None:
        """Each account has its own access log or none, despite the environment."""
        self.write("acme.conf", "ACCESS_LOG_FILE=acme.jsonl")
        self.write("beta.conf", "ACCESS_LOG_REQUESTS_PER_MINUTE=6")
        self.write("gamma.conf", "ACCESS_LOG_METRICS=false")
        found = self.accounts(**self.environ, ACCESS_LOG_METRICS="true")
        folder = self.folder.absolute()
        self.assertEqual(folder / "acme.jsonl", found["acme"].access_log_file)
        self.assertEqual(folder / "acme.jsonl.cursor", found["acme"].access_log_cursor)
        self.assertEqual(6, found["beta"].access_log_requests_per_minute)
        self.assertEqual(
            {"acme": True, "beta": True, "gamma": False},
            {name: account.reads_access_log for name, account in found.items()},
        )
        self.write("gamma.conf", "ACCESS_LOG_FILE=acme.jsonl")
        problems = self.problems(**self.environ)
        self.assertEqual(2, len(problems))  # the file and its cursor
        self.assertIn(
            "ACCESS_LOG_FILE of acme and ACCESS_LOG_FILE of gamma", problems[0]
        )

    def test_links(self) -> None:
        """Two names of the same file are the same file."""
        (self.folder / "link").symlink_to("real")
        self.write("acme.conf", "EVENTS_FILE=real", "EVENTS_CURSOR_FILE=a")
        self.write("beta.conf", "EVENTS_FILE=link", "EVENTS_CURSOR_FILE=b")
        [problem] = self.problems(**self.environ)
        self.assertRegex(problem, r"^EVENTS_FILE of acme .* not '.*/real'$")

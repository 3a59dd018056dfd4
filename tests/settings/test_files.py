"""Files of audit events, in the settings of one account and of many."""

from pathlib import Path

from api_exporter.settings.definitions import Settings
from api_exporter.settings.environment import read
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.parsers import STANDARD_OUTPUT
from tests.settings.test_accounts import CANARY, URL, FolderTestCase

ONE = {"UPSTREAM_API_URL": URL, "UPSTREAM_API_TOKEN": CANARY}


class OneTests(FolderTestCase):
    def one(self, **environ: str) -> Settings:
        return read(ONE | environ)

    def test_off(self) -> None:
        """Without the setting nothing is written, and nothing asked for."""
        settings = self.one()
        self.assertIsNone(settings.accounts[""].events_file)
        self.assertEqual("", settings.to_output)

    def test_cursor(self) -> None:
        """The cursor is beside the file, unless it is elsewhere."""
        account = self.one(EVENTS_FILE="/var/log/e.jsonl").accounts[""]
        self.assertEqual(Path("/var/log/e.jsonl.cursor"), account.events_cursor)
        settings = self.one(EVENTS_FILE="-", EVENTS_CURSOR_FILE="/var/lib/e")
        self.assertEqual(Path("/var/lib/e"), settings.accounts[""].events_cursor)
        self.assertEqual("EVENTS_FILE", settings.to_output)

    def test_cursor_required(self) -> None:
        """Beside standard output there is no place for a cursor."""
        with self.assertRaises(ConfigurationError) as caught:
            self.one(EVENTS_FILE="-")
        [problem] = caught.exception.problems
        expected = "EVENTS_CURSOR_FILE is not set: where EVENTS_FILE is -, it must be"
        self.assertTrue(problem.startswith(expected))

    def test_same(self) -> None:
        """One file cannot be both."""
        with self.assertRaises(ConfigurationError) as caught:
            self.one(EVENTS_FILE="/nowhere/e", EVENTS_CURSOR_FILE="/nowhere/./e")
        self.assertEqual(
            [
                "EVENTS_FILE and EVENTS_CURSOR_FILE: each needs a file of its own, "
                "not '/nowhere/e'"
            ],
            caught.exception.problems,
        )


class SeveralTests(FolderTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.environ = ONE | {"ACCOUNTS_DIR": str(self.folder)}

    def test_relative(self) -> None:
        """In an account's file, names are relative to that, and `-` is no name."""
        self.write("acme.conf", "EVENTS_FILE=acme.jsonl")
        self.write("beta.conf", "EVENTS_FILE=-", "EVENTS_CURSOR_FILE=beta.cursor")
        self.write("gamma.conf", "EVENTS_FILE=-", "EVENTS_CURSOR_FILE=gamma.cursor")
        found = self.accounts(**self.environ)
        folder = self.folder.absolute()
        self.assertEqual(folder / "acme.jsonl", found["acme"].events_file)
        self.assertEqual(STANDARD_OUTPUT, found["beta"].events_file)
        self.assertEqual(folder / "beta.cursor", found["beta"].events_cursor)

    def test_shared(self) -> None:
        """Two accounts with one file, or with one cursor, are a mistake."""
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

    def test_links(self) -> None:
        """Whatever a file is called, it is the same one."""
        (self.folder / "link").symlink_to("real")
        self.write("acme.conf", "EVENTS_FILE=real", "EVENTS_CURSOR_FILE=a")
        self.write("beta.conf", "EVENTS_FILE=link", "EVENTS_CURSOR_FILE=b")
        [problem] = self.problems(**self.environ)
        self.assertRegex(problem, r"^EVENTS_FILE of acme .* not '.*/real'$")

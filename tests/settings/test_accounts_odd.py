"""Accounts with odd files, or with secrets in the wrong places."""

import os
import signal

from api_exporter.settings.accounts import account_files
from api_exporter.settings.errors import ConfigurationError, quote_value
from api_exporter.settings.loader import load
from api_exporter.settings.parsers import Shard
from tests.logbook import logbook
from tests.settings.test_accounts import CANARY, URL, FolderTestCase
from tests.settings.test_options import parsed


class OddFilesTests(FolderTestCase):
    def test_special(self) -> None:
        """The exporter does not wait for a pipe, and does not read a device."""
        pipe, device = self.folder / "acme.conf", self.folder / "beta.conf"
        os.mkfifo(pipe)
        device.symlink_to("/dev/null")
        signal.alarm(5)  # ends a test that waits
        self.addCleanup(signal.alarm, 0)
        self.assertEqual(
            [f"{path}: the file is not a regular file" for path in (pipe, device)],
            self.problems(UPSTREAM_API_URL=URL),
        )

    def loaded(self, **environ: str) -> tuple[list[str], list[str]]:
        """Return the names of the accounts, and the warnings."""
        options = parsed()
        book = logbook(self)
        found = {"ACCOUNTS_DIR": str(self.folder), "UPSTREAM_API_URL": URL, **environ}
        return list(load(options, found).accounts), book.lines()

    def test_other_shards(self) -> None:
        """A shard reads no file of another shard, and does not check its mode."""
        mine, other = (next(x for x in "abcd" if Shard(n, 2).keeps(x)) for n in (0, 1))
        path = self.write(f"{mine}.conf", f"UPSTREAM_API_TOKEN={CANARY}")
        path.chmod(0o644)
        self.write(f"{other}.conf", "what is this?").chmod(0o644)
        words = "is readable by every user of this machine"
        line = f"warning {path} {words} account={mine}"
        self.assertEqual(([mine], [line]), self.loaded(SHARD="0/2"))

    def test_names(self) -> None:
        """A file with a wrong account name has a warning with the allowed names."""
        self.write("acme.conf", f"UPSTREAM_API_TOKEN={CANARY}").chmod(0o600)
        names = ("a b.conf", "müller.conf", "neu\n\udc80.conf")
        odd = [self.write(name) for name in names]
        for name in ("acme.conf~", "acme.conf.dpkg-old", "README"):
            self.write(name)
        (self.folder / "a folder.conf").mkdir()
        lines = [
            f"warning {str(path)!r} is not an account file and is ignored: a name may"
            " contain a-z, A-Z, digits, dots, underscores and hyphens"
            for path in odd
        ]
        self.assertEqual((["acme"], lines), self.loaded())

    def test_every_line(self) -> None:
        """An error on two lines is reported twice."""
        path = self.write("acme.conf", "FOO=1", "FOO=2")
        found = self.problems(UPSTREAM_API_URL=URL, UPSTREAM_API_TOKEN=CANARY)
        self.assertEqual(
            [f"{path}:1: FOO is", f"{path}:2: FOO is"],
            [problem.partition(" not a setting")[0] for problem in found],
        )


class FolderTests(FolderTestCase):
    def test_not_there_yet(self) -> None:
        """A folder that is missing or not listed is the only error, retryable."""
        gone = self.folder / "gone"
        error = self.assertRaises(ConfigurationError, account_files, gone)
        problem = f"ACCOUNTS_DIR: {gone}: No such file or directory"
        self.assertEqual(([problem], True), ([*error.problems], error.retryable))
        for shard in ("", "0/3"):
            error = self.refused(ACCOUNTS_DIR=str(gone), SHARD=shard)
            (problem,) = error.problems
            expected = f"ACCOUNTS_DIR: {quote_value(str(gone))} is not allowed"
            self.assertTrue(problem.startswith(expected), problem)
            self.assertIn("(No such file or directory)", problem)
            self.assertTrue(error.retryable)


class SecretsTests(FolderTestCase):
    def test_of_others(self) -> None:
        """No token is repeated, in any place and of any account."""
        mine, others, of_all = "c4nary-of-mine", "c4nary-of-others", "c4nary-of-all"
        self.write("acme.conf", f"HTTP_TIMEOUT={others}", f"UPSTREAM_API_TOKEN={mine}")
        lines = f"UPSTREAM_API_TOKEN={others}", f"METRICS_MAX_AGE={of_all}"
        self.write("beta.conf", *lines)
        self.write("gamma.conf", f"COLLECTORS={mine}")
        environ = {"UPSTREAM_API_TOKEN": of_all, "LOG_LEVEL": mine}
        self.assertEqual(4, len(self.problems(UPSTREAM_API_URL=URL, **environ)))

    def test_alone(self) -> None:
        """A token without a name is not repeated, even if it ends like a name."""
        path = self.write("acme.conf", "c4nary123=", "c4nary456==", "FOO=", "bar=1")
        found = self.problems(UPSTREAM_API_URL=URL, UPSTREAM_API_TOKEN=CANARY)
        names = ("the name", "the name", "FOO", "bar")
        self.assertEqual(
            [f"{path}:{line}: {name}" for line, name in enumerate(names, 1)],
            [problem.partition(" is not a setting")[0] for problem in found],
        )

"""Configuration files, compared with what a shell and systemd read."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from unittest import SkipTest

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.configuration_file import (
    MAX_CONFIGURATION_BYTES,
    assignment,
    load_file,
    readable_by_all,
    with_defaults_from,
)
from api_exporter.settings.errors import ConfigurationError
from tests import tries

SHELLS = [path for path in map(shutil.which, ("sh", "bash")) if path is not None]
"""The shell that every system has, and the usual interactive shell."""

GENERATOR = Path(
    "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator"
)
"""This program prints environment.d with the parser of EnvironmentFile=."""

OURS = "X_"
"""Prefix of the tests' variables, which have no meaning to a shell."""


def by_shell(shell: str, file: Path) -> dict[str, str] | None:
    """Return a shell's environment after the file, or None after an error."""
    command = [shell, "-c", 'set -ae; . "$0"; exec env -0', str(file.absolute())]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": "/home/somebody"},
        timeout=30,
    )
    if done.returncode != 0 or done.stderr:
        return None
    pairs = (x.partition("=") for x in done.stdout.decode().split("\0") if x)
    return {name: value for name, _, value in pairs if name.startswith(OURS)}


def by_systemd(file: Path, home: Path) -> dict[str, str]:
    """Return the variables that systemd's own parser reads in a file."""
    (home / "environment.d").mkdir(parents=True)
    (home / "environment.d/x.conf").symlink_to(file.absolute())
    printed = subprocess.run(
        [str(GENERATOR)],
        check=True,
        capture_output=True,
        env={"XDG_CONFIG_HOME": str(home.absolute())},
        timeout=30,
    ).stdout.decode()
    # systemd escapes every ` in double quotes, which shlex does not support
    pairs = (x.partition("=") for x in shlex.split(printed.replace("\\`", "`")))
    return {name: value for name, _, value in pairs if name.startswith(OURS)}


ACCEPTED = (
    ("X_A=1", "1"),
    ("X_A=", ""),
    ("X_A=''", ""),
    ('X_A=""', ""),
    ("X_A=a=b", "a=b"),
    ("X_A=https://api.example:8443/x?y=%20", "https://api.example:8443/x?y=%20"),
    ("X_A=[::1]:8080,unix:/run/x.sock", "[::1]:8080,unix:/run/x.sock"),
    ("X_A=peers=15s,groups=1m", "peers=15s,groups=1m"),
    ("X_A='two words'", "two words"),
    ("X_A='say \"$x\" `y` # z'", 'say "$x" `y` # z'),
    ('X_A="two words"', "two words"),
    ('X_A="it\'s # one"', "it's # one"),
    (r'X_A="\"\$x\" \`y\` \\"', r'"$x" `y` \ '.rstrip()),
    ("X_A='schön'", "schön"),
)
"""Lines and their values."""

REFUSED = {
    "X_A": (
        *("X_A", "X_A canary", "X_A =canary", "X_A= canary", "X_A=canary other"),
        *("X_A=canary # why", "X_A=canary;other", "X_A=canary#other", "X_A=$canary"),
        *("X_A=$(canary)", "X_A=`canary`", r"X_A=canary\ other", "X_A=canary\\"),
        *("X_A=~canary", "X_A=canary&", "X_A=schön", "X_A='canary"),
        *("X_A='canary' # why", "X_A='canary'other", "X_A='canary''other'"),
        *(r"X_A='canary\'", 'X_A="canary', 'X_A="canary" other', 'X_A="canary"other'),
        *('X_A="$canary"', 'X_A="`canary`"', r'X_A="canary\n"', 'X_A="canary\\'),
        *("export X_A", "export X_A canary"),
    ),
    "'X-A'": ("X-A=canary",),
    "'1X'": ("1X=canary",),
    "''": ("=canary",),
    "'X_A+'": ("X_A+=canary",),
    "'X_Ä'": ("X_Ä=canary",),
    "NAME=": ("; X_A=canary", "set X_A=canary"),
}
"""The names in errors, and the lines that have these errors."""


class AssignmentTests(SynchronousTestCase):
    def test_accepted(self) -> None:
        """Plain and quoted values are read, with and without `export`."""
        for line, value in ACCEPTED:
            for before in ("", "export ", "export \t "):
                self.assertEqual(("X_A", value), assignment(before + line), line)

    def refusal(self, line: str) -> str:
        """Return the error of a line, which does not repeat its text."""
        words = str(self.assertRaises(ValueError, assignment, line))
        self.assertNotIn("canary", words)
        self.assertEqual([words], words.splitlines())
        return words

    def test_refused(self) -> None:
        """Other values are refused by name, or by the quote that is closed."""
        for name, lines in REFUSED.items():
            for line in lines:
                words = self.refusal(line)
                self.assertTrue(words.startswith((f"{name}: ", f"{name} is ")), words)
        for line, words in (
            *(("X_A='a' b", "the closing ', and"), ('X_A="a" b', 'the closing ", and')),
            *(("X_A = 1", "no spaces around ="), ("X_A=a b", "value into quotes; a")),
        ):
            self.assertIn(words, self.refusal(line))

    def test_lonely_value(self) -> None:
        """A value without a name, as on a broken line, is not repeated."""
        for line in (
            *("nbp_canary", "'nbp_canary'", '"nbp_canary"', "export nbp_canary"),
            *("nbp-canary==", "Bearer:nbp_canary", "Bearer:nbp_canary of mine"),
            *("nbp_canary # of mine", "nbp+canary="),
            "http://user:canary=1@proxy.example:3128",
        ):
            self.refusal(line)


class LoadTests(SynchronousTestCase):
    def file(self, content: str | bytes) -> Path:
        path = Path(self.mktemp())
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def refused(self, path: Path, *, retryable: bool = False) -> list[str]:
        error = self.assertRaises(ConfigurationError, load_file, path)
        self.assertEqual("\n".join(error.problems), str(error))
        self.assertEqual(retryable, error.retryable)
        return list(error.problems)

    def test_lines(self) -> None:
        """Comments, blank lines and indentation are ignored; the last line counts."""
        text = "# a\n\n  \t\n   # b=c\n  X_A=1\n\tX_B='x y'\nexport X_C=3\nX_A=2"
        expected = {"X_A": "2", "X_B": "x y", "X_C": "3"}
        self.assertEqual(expected, load_file(self.file(text)))
        self.assertEqual(expected, load_file(self.file(text + "\n")))
        self.assertEqual({}, load_file(self.file("")))

    def test_all_mistakes(self) -> None:
        """All wrong lines are reported at once, with file, first line and name."""
        path = self.file("X_A=1\nX_B=canary x\n# c\n\nX_C\nX_D=2\nexport X_E='canary\n")
        problems = self.refused(path)
        starts = [f"{path}:2: X_B: ", f"{path}:5: X_C: ", f"{path}:7: X_E: "]
        self.assertEqual(3, len(problems))
        for start, problem in zip(starts, problems, strict=True):
            self.assertTrue(problem.startswith(start), problem)
            self.assertNotIn("canary", problem)
        for text in ("X_A='a\nb'\n", 'X_A="a\nb"\n', "X_A=a\\\nb\n"):
            path = self.file(text)
            self.assertTrue(self.refused(path)[0].startswith(f"{path}:1: X_A: "))

    def test_many_mistakes(self) -> None:
        """Only the first twenty wrong lines are reported, and the number of others."""
        path = self.file("x\n" * 400_000)
        problems = self.refused(path)
        self.assertEqual(21, len(problems))
        self.assertEqual(f"{path}: 399,980 more wrong lines", problems[-1])
        self.assertTrue(problems[-2].startswith(f"{path}:20: "))

    def test_too_long(self) -> None:
        """A file may have 1 MB, and no more than that is read."""
        self.assertEqual({}, load_file(self.file("#" * MAX_CONFIGURATION_BYTES)))
        for path in (self.file("#" * (MAX_CONFIGURATION_BYTES + 1)), Path("/dev/zero")):
            words = f"the file has more than {MAX_CONFIGURATION_BYTES} bytes"
            self.assertEqual([f"{path}: {words}"], self.refused(path))

    def test_pipe(self) -> None:
        """The file may be a pipe, which can be read only once."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.write(writer, b"A=1\n")
        os.close(writer)
        self.assertEqual({"A": "1"}, load_file(Path(f"/dev/fd/{reader}")))

    def test_unreadable(self) -> None:
        """The error of an unreadable file is one line; only text is not retryable."""
        directory = Path(self.mktemp())
        directory.mkdir()
        for path, why in (
            (directory / "x", "No such file or directory"),
            (directory, "Is a directory"),
            (b"X_A='sch\xf6n'\n", "the file is not UTF-8 text: save it as UTF-8"),
            (
                b"\xef\xbb\xbfA=1",
                "it has a byte order mark: save it as UTF-8 without BOM",
            ),
            (b"A=1\r\n", "it has Windows line ends: save it with Unix line ends"),
        ):
            if isinstance(path, bytes):
                made = self.file(path)
                self.assertEqual([f"{made}: {why}"], self.refused(made))
            else:
                self.assertEqual([f"{path}: {why}"], self.refused(path, retryable=True))

    def test_readable_by_all(self) -> None:
        """Only the permission of all other users counts, not of owner or group."""
        path = self.file("X_A=1\n")
        for modes, expected in (((0o600, 0o640, 0o660), False), ((0o644, 0o604), True)):
            for mode in modes:
                path.chmod(mode)
                self.assertEqual(expected, readable_by_all(path), oct(mode))
        path.unlink()
        self.assertFalse(readable_by_all(path))


class BelowTests(SynchronousTestCase):
    def test_below(self) -> None:
        """The environment takes precedence over the file, unless it is empty."""
        environ, file = {"X_A": "1", "X_B": "2"}, {"X_B": "3", "X_C": "4"}
        found = with_defaults_from(environ, file)
        self.assertEqual({"X_A": "1", "X_B": "2", "X_C": "4"}, found)
        self.assertEqual(({"X_A": "1", "X_B": "2"}, 2), (environ, len(file)))
        for blank in ("", " ", "\t"):
            found = with_defaults_from({"X_A": blank}, {"X_A": "1"})
            self.assertEqual({"X_A": "1"}, found)


def escaped(text: str) -> str:
    """Return a text in double quotes, with backslashes where necessary."""
    return '"' + "".join(f"\\{c}" if c in '\\"$`' else c for c in text) + '"'


BARE = st.text("aZ09_@%+:,./?=[]~*^!{}-", max_size=8) | st.text("a,:=~{}", max_size=5)
ANY = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n")
    | st.sampled_from("\\\"'$`#;&|<>()~!{}[]*?=: \t\r\0\x0b\x85\u2028"),
    max_size=8,
)
VALUES = st.one_of(BARE, ANY, ANY.map("'{}'".format), ANY.map('"{}"'.format))
VALUES |= ANY.map(escaped)


def accepted(values: list[str], before: str = "") -> dict[str, str]:
    """Return which of these values, as written, can be assigned."""
    lines = {}
    for number, value in enumerate(values):
        line = f"{before}{OURS}{number}={value}"
        try:
            assignment(line)
        except ValueError:
            continue
        lines[f"{OURS}{number}"] = line
    return lines


class AgreementTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = Path(self.mktemp())

    @settings(deadline=None, max_examples=tries(90))
    @given(st.lists(VALUES, max_size=30), st.sampled_from(("", "export ")))
    def test_any(self, values: list[str], before: str) -> None:
        """A shell reads every accepted value like the exporter, with `export` too."""
        lines = accepted(values, before)
        read = dict(map(assignment, lines.values()))
        self.path.write_bytes("".join(f"{x}\n" for x in lines.values()).encode())
        for shell in SHELLS:
            self.assertEqual(read, by_shell(shell, self.path), (shell, lines))

    def test_white_space(self) -> None:
        """White space that a shell does not know ends no line and no value."""
        for text in (
            *(
                "X_A=1\r\nX_B=2\r\n",
                "X_A=1\x0bX_B=2\n",
                "X_A=1\x0c\n",
                "# a\x85X_A=1\n",
            ),
            *("# a\u2028X_A=1\n", "# a\x1cX_A=1\n", "X_A=1\xa0\n", "\u3000X_A=1\n"),
            *("export\xa0X_A=1\n", "X_A='a\0b'\n"),
        ):
            self.path.write_bytes(text.encode())
            try:
                read = load_file(self.path)
            except ConfigurationError:
                continue
            for shell in SHELLS:
                self.assertEqual(read, by_shell(shell, self.path), (shell, text))

    @settings(deadline=None, max_examples=tries(60))
    @given(
        st.lists(VALUES.filter(lambda x: "$" not in x and x.isprintable()), max_size=30)
    )
    def test_systemd(self, values: list[str]) -> None:
        """The same holds for systemd, whose tool expands $ and control characters."""
        if not GENERATOR.exists():
            raise SkipTest(f"missing program: {GENERATOR}")
        lines = accepted(values)
        self.path.write_bytes("".join(f"{x}\n" for x in lines.values()).encode())
        read = map(assignment, lines.values())
        expected = {name: value for name, value in read if value}  # no others
        self.assertEqual(expected, by_systemd(self.path, Path(self.mktemp())), lines)

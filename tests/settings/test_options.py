"""The options of both commands."""

import io
import os
import sys

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.options import Options
from api_exporter.version import this_build


def parsed(*arguments: str) -> Options:
    options = Options()
    options.parseOptions(arguments)
    return options


class OptionsTests(SynchronousTestCase):
    def test_flags(self) -> None:
        """No flag is set by default, and each flag sets its own option."""
        for arguments, expected in (
            ([], (0, 0, None)),
            (["--demo"], (1, 0, None)),
            (["--enable-pprof"], (0, 1, None)),
            (["--config", "a b"], (0, 0, "a b")),
            (["--config=x", "--demo"], (1, 0, "x")),
            (["-c", "x"], (0, 0, "x")),
        ):
            options = parsed(*arguments)
            found = tuple(options[name] for name in ("demo", "enable-pprof", "config"))
            self.assertEqual(expected, found, arguments)

    def test_wrong(self) -> None:
        """An unknown or incomplete option is refused."""
        for text in [
            "--nonsense",
            "--config",
            "--config=",
            "--demo=yes",
            "peers",
            "--check",
            "--once",
        ]:
            self.assertRaises(UsageError, parsed, text)

    def test_version(self) -> None:
        """Only the version is printed."""
        printed = io.StringIO()
        self.patch(sys, "stdout", printed)
        raised = self.assertRaises(SystemExit, Options().parseOptions, ["--version"])
        self.assertEqual(0, raised.code)
        self.assertEqual(f"{this_build()}\n", printed.getvalue())

    def test_inherited(self) -> None:
        """Variables for another service do not reach prometheus_client and Twisted."""
        names = "PROMETHEUS_MULTIPROC_DIR prometheus_multiproc_dir PY_SAX_PARSER"
        names += " POSIXLY_CORRECT"
        others = dict.fromkeys([*names.split(), "ZOPE_INTERFACE_STRICT_IRO"], "1")
        for columns, kept in (
            *(("abc", {}), ("", {}), ("0", {}), ("30", {})),
            ("40", {"COLUMNS": "40"}),
        ):
            self.patch(os, "environ", {"A": "b", "COLUMNS": columns, **others})
            options = Options()
            self.assertEqual({"A": "b", **kept}, os.environ)
            self.assertEqual({"A": "b", **kept}, options.environ)
            self.assertIn("--config", str(options))

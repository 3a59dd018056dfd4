"""The command line, without a process of its own."""

import io
import os
import re
import signal
import sys

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.cli import CommandOptions, main
from api_exporter.settings.definitions import SETTINGS
from api_exporter.settings.example import example_file


class CommandOptionsTests(SynchronousTestCase):
    def test_flags(self) -> None:
        """The command has the daemon's options, and those for a terminal."""
        for arguments, expected in (
            ([], (0, 0)),
            (["--check"], (1, 0)),
            (["--once"], (0, 1)),
            (["--check", "--demo", "--config=x"], (1, 0)),
        ):
            options = CommandOptions()
            options.parseOptions(arguments)
            self.assertEqual(expected, (options["check"], options["once"]), arguments)
            self.assertEqual("--demo" in arguments, bool(options["demo"]))

    def test_word(self) -> None:
        """The first word that is no option is named."""
        with self.assertRaisesRegex(UsageError, "^'check' is not an option"):
            CommandOptions().parseOptions(["check", "once"])


class MainTests(SynchronousTestCase):
    def ended(self, *arguments: str) -> tuple[object, str]:
        """Return the exit status of the command, and its output."""
        printed = io.StringIO()
        self.patch(sys, "stdout", printed)
        self.patch(sys, "argv", ["api-exporter", *arguments])
        try:
            main()
        except SystemExit as exit_:
            return exit_.code, printed.getvalue()
        return None, printed.getvalue()

    def test_help(self) -> None:
        """The help is printed, and is no failure."""
        status, printed = self.ended("--help")
        self.assertIn(status, (0, None))
        self.assertIn("Usage: api-exporter ", printed)
        self.assertIn("--check", printed)
        for setting in SETTINGS:
            [line] = re.findall(rf"^  {setting.name}  +(.*)$", printed, re.MULTILINE)
            self.assertRegex(line, r"\A[A-Z].*[^.]\.\Z")
            self.assertNotIn(". ", line)

    def test_settings(self) -> None:
        """`--settings` prints the file with all settings."""
        self.assertEqual((None, example_file()), self.ended("--settings"))

    def test_broken_pipe(self) -> None:
        """A reader that ends early is no error."""
        for command in ("--help", "--settings", "--runbook=ApiExporterDown"):
            self.patch(sys, "argv", ["api-exporter", command])
            reader, writer = os.pipe()
            os.close(reader)
            with open(writer, "w") as closed:
                self.patch(sys, "stdout", closed)
                ended = self.assertRaises(SystemExit, main)
            self.assertEqual(128 + signal.SIGPIPE, ended.code)

    def test_rules(self) -> None:
        """`--rules` was removed: a line says what to use."""
        stderr = io.StringIO()
        self.patch(sys, "stderr", stderr)
        self.assertEqual((os.EX_CONFIG, ""), self.ended("--rules"))
        [line] = stderr.getvalue().splitlines()
        self.assertIn("use deploy/prometheus/rules.yml and alerts.yml as they", line)

    def test_runbook(self) -> None:
        """A runbook is printed as text. The case of its name does not matter."""
        _, printed = self.ended("--runbook", "apiexporterdatalate")
        title, _, meaning, *_, last = printed.splitlines()
        self.assertEqual("ApiExporterDataLate", title)
        self.assertIn("ApiExporterUpstreamFailing fires in its place", meaning)
        self.assertTrue(last.startswith("* Do: "), last)
        self.assertNotRegex(printed, r"\*\*|\]\(")

    def test_encoding(self) -> None:
        """A letter of a runbook that the terminal lacks is escaped."""
        printed = io.BytesIO()
        self.patch(sys, "stdout", io.TextIOWrapper(printed, "ascii"))
        self.patch(sys, "argv", ["api-exporter", "--runbook=ApiExporterAccessLogLate"])
        main()
        self.assertIn(rb"\u2026", printed.getvalue())

    def test_wrong(self) -> None:
        """A wrong command line is reported in one line that names the help."""
        line = ""
        for arguments in (
            *(["--nonsense"], ["--config"], ["peers"], ["--check", "x"]),
            *(["--account=acme"], ["--runbook=NoSuchAlert"], ["--check", "--once"]),
            *(["--strict"], ["--once", "--json"]),
            *(["--demo", "--account", "acme"], ["--web.listen-address=:9"]),
        ):
            stderr = io.StringIO()
            self.patch(sys, "stderr", stderr)
            self.assertEqual((os.EX_CONFIG, ""), self.ended(*arguments))
            [line] = stderr.getvalue().splitlines()
            self.assertTrue(line.startswith("api-exporter: "), line)
            self.assertTrue(line.endswith("; see api-exporter --help"), line)
        self.assertIn("use the setting LISTEN_ADDRESS, in", line)

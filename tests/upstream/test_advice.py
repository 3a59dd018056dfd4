"""Advice for each reason, in words that an operator can act on."""

import re

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import REASONS, UpstreamError
from api_exporter.settings.definitions import SETTINGS
from api_exporter.settings.proxy import VARIABLES
from api_exporter.upstream.advice import ADVICE, advice


class AdviceTests(SynchronousTestCase):
    def test_complete(self) -> None:
        """Each reason has one row, in the order of the reasons."""
        self.assertEqual(list(REASONS), list(ADVICE))

    def test_sentences(self) -> None:
        """Advice consists of sentences in one line, so it fits in a table."""
        for reason in REASONS:
            said = advice(UpstreamError(reason, "whatever the upstream said"))
            self.assertRegex(said, r"^[A-Z][^\n|]+\. [A-Z][^\n|]+\.$")
            self.assertNotIn("  ", said)

    def test_dns(self) -> None:
        """Twisted tells a dead name server like an unknown name."""
        self.assertIn("no name server answers", advice(UpstreamError("dns", "")))

    def test_settings(self) -> None:
        named = re.findall(r"[A-Z]+(?:_[A-Z]+)+|COLLECTORS", repr(ADVICE))
        self.assertIn("UPSTREAM_API_TOKEN", named)
        known = {setting.name for setting in SETTINGS}.union(VARIABLES)
        self.assertEqual(set(), set(named) - known)

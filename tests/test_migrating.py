"""What `docs/migrating.md` promises, as far as it can be seen without a Prometheus."""

import re

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.environment import SYNONYMS
from tests.collectors.incumbent import LABELS, LEFT_OUT, OF_SCRAPES, PREFIX
from tests.documents import metrics
from tests.migrating import DOCUMENT, alerts, pairs


class MigratingTests(SynchronousTestCase):
    def test_every_name(self) -> None:
        """Each of the 74 names has one row, and what is not published says so."""
        rows = {pair.name.removeprefix(PREFIX): pair for pair in pairs()}
        self.assertEqual(74, len(rows))
        self.assertEqual(74, len(list(pairs())))
        self.assertEqual({*LABELS, *OF_SCRAPES, *LEFT_OUT}, set(rows))
        for name in OF_SCRAPES:
            self.assertTrue(rows[name].difference.startswith("**refreshes**"), name)
        for name in LEFT_OUT:
            self.assertRegex(rows[name].difference, "not published|never had a value")

    def test_our_names(self) -> None:
        """Everything that is to be asked for here exists."""
        known = set(re.findall(r"`((?:netbird_api|api_exporter)_\w+)`", metrics()))
        for query in (*(pair.ours for pair in pairs()), *alerts()):
            for name in re.findall(r"\b(?:netbird_api|api_exporter)_\w+", query):
                self.assertIn(name.removesuffix("_bucket"), known)

    def test_settings(self) -> None:
        """The settings with other names have a row with ours."""
        text = DOCUMENT.read_text(encoding="utf-8")
        for theirs, ours in SYNONYMS.items():
            row = f"| `{theirs}` | " + ", or ".join(f"`{name}`" for name in ours)
            self.assertIn(row, text)

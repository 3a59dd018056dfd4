"""The promises of `docs/migrating.md` that can be tested without a Prometheus."""

import re

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.environment import SYNONYMS
from tests.incumbent import LABELS, PREFIX, WITHOUT_RULE
from tests.migrating import DOCUMENT, alerts, pairs
from tools.documents import metrics


class MigratingTests(SynchronousTestCase):
    def test_every_name(self) -> None:
        """There are 74 names. Each that no rule makes has a row that says so."""
        rows = {pair.name.removeprefix(PREFIX): pair for pair in pairs()}
        self.assertEqual(len(rows), len(list(pairs())))
        self.assertEqual((63, 74), (len(LABELS), len({*LABELS, *WITHOUT_RULE})))
        self.assertLessEqual(rows.keys(), {*LABELS, *WITHOUT_RULE})
        without = {name for name, pair in rows.items() if "no rule" in pair.difference}
        self.assertEqual(WITHOUT_RULE, without)

    def test_our_names(self) -> None:
        """Each name in the new queries exists."""
        known = set(re.findall(r"`((?:netbird_api|api_exporter)_\w+)`", metrics()))
        for query in (*(pair.ours for pair in pairs()), *alerts()):
            for name in re.findall(r"\b(?:netbird_api|api_exporter)_\w+", query):
                self.assertIn(name.removesuffix("_bucket"), known)

    def test_settings(self) -> None:
        """Settings with other names have a row with the new name."""
        text = DOCUMENT.read_text(encoding="utf-8")
        for theirs, ours in SYNONYMS.items():
            row = f"| `{theirs}` | " + ", or ".join(f"`{name}`" for name in ours)
            self.assertIn(row, text)

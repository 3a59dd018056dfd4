from collections import Counter

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.definitions import SETTINGS
from api_exporter.subjects.table import COLLECTORS
from tests.bodies import inventory
from tests.collectors.samples import PREFIX, page, parsed
from tools.documents import DOCUMENTS, ROOT, configuration, metrics


def labels(*, personal: bool) -> dict[str, set[str]]:
    """Return the label names of each family on a page."""
    found: dict[str, set[str]] = {}
    for (name, pairs), _ in parsed(page(inventory(personal=personal))):
        found.setdefault(name, set()).update(label for label, _ in pairs)
    return found


class DocumentsTests(SynchronousTestCase):
    maxDiff = None

    def test_fresh(self) -> None:
        """The documents are up to date with the code (`python -m tools.documents`)."""
        for path, made in DOCUMENTS.items():
            written = (ROOT / path).read_text(encoding="utf-8")
            self.assertEqual(made().split("\n"), written.split("\n"), path)

    def test_every_family(self) -> None:
        """Each family has a row with its labels, personal ones in italics."""
        lines = [line for line in metrics().split("\n") if line.startswith("| `")]
        rows = [line.split(" | ") for line in lines]
        names = {metric.name for one in COLLECTORS for metric in one.families}
        cells = {
            name: row[2]
            for row in rows
            if (name := row[0][3:-1]) in names or name.startswith(PREFIX)
        }
        cells.pop(f"{PREFIX}up")
        self.assertEqual(names, cells.keys())
        public, personal = (labels(personal=shown) for shown in (False, True))
        for name, cell in cells.items():
            words = cell.replace("–", "").split(", ")
            plain = {word.strip("`") for word in words if not word.startswith("_")}
            slanted = {word.strip("_`") for word in words if word.startswith("_")}
            known = public.get(name, set())
            self.assertEqual(known, plain - {""}, name)
            self.assertEqual(personal[name] - known, slanted, name)

    def test_series(self) -> None:
        """Families of one or two series have that many; peers' have PEER_DETAIL."""
        counts = Counter(name for (name, _), _ in parsed(page(inventory())))
        for row in metrics().split("\n"):
            if row.startswith(f"| `{PREFIX}") and row.count(" | ") == 6:
                name, _, labels, series, *_ = row[2:].split(" | ")
                if series in {"1", "2"}:
                    self.assertEqual(int(series), counts[name.strip("`")], name)
                self.assertEqual("`peer_id`" in labels, "`PEER_DETAIL`" in series)
        self.assertIn("wait for approval, always 0 on a self-hosted", metrics())

    def test_every_setting(self) -> None:
        """Each setting has a row, those without a default are required."""
        for setting in SETTINGS:
            start, lines = f"| `{setting.name}` |", configuration().split("\n")
            (row,) = [line for line in lines if line.startswith(start)]
            self.assertEqual(setting.default is None, "| required |" in row)

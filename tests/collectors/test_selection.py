"""What the names of collectors and intervals come to."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.selection import selection
from api_exporter.collectors.table import COLLECTORS
from api_exporter.netbird.resources import RESOURCES


class SelectionTests(SynchronousTestCase):
    def test_some(self) -> None:
        """Resources are those that are read, in the order of the first round."""
        selected = selection({"groups", "peers"}, {})
        self.assertEqual(["peers", "groups"], [c.name for c in selected.collectors])
        self.assertEqual(
            ["peers", "accounts", "groups"], [r.name for r in selected.resources]
        )

    def test_peers(self) -> None:
        """The peers are always asked for: they say whether it works."""
        for names in (set[str](), {"setup_keys"}):
            selected = selection(names, {})
            self.assertEqual("peers", selected.resources[0].name)
            self.assertEqual(len(names), len(selected.collectors))

    def test_all(self) -> None:
        """All collectors together read everything there is."""
        selected = selection([c.name for c in COLLECTORS], {})
        self.assertEqual(RESOURCES, selected.resources)

    def test_omitted(self) -> None:
        """What is omitted is not asked for, although a collector would read it."""
        selected = selection({"users"}, {}, {"access_tokens"})
        self.assertEqual(["peers", "users"], [r.name for r in selected.resources])
        self.assertNotIn("access_tokens", selected.periods)

    def test_periods(self) -> None:
        """Intervals are for what is named, and only for what is read."""
        selected = selection({"peers"}, {"peers": 15, "events": 5})
        self.assertEqual({"peers": 15, "accounts": 300}, selected.periods)

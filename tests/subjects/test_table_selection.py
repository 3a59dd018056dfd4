"""Selections from the names of collectors and intervals."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import ACCESS_LOG, ALWAYS_READ, OFF
from api_exporter.subjects.table import (
    COLLECTORS,
    RESOURCE_BY_NAME,
    RULES,
    Selection,
    selection,
)


def read(selected: Selection) -> list[str]:
    """Return the resources that are always read, and those of the collectors."""
    wanted = ALWAYS_READ.union(*(collector.reads for collector in selected.collectors))
    return [name for name in RESOURCE_BY_NAME if name in wanted]


class SelectionTests(SynchronousTestCase):
    def test_default(self) -> None:
        """Only memberships and events are off by default."""
        off = [collector.name for collector in COLLECTORS if not collector.default]
        self.assertEqual(["memberships", "events"], off)

    def test_some(self) -> None:
        """Resources that are read are selected, in the order of first requests."""
        selected = selection({"groups", "peers"}, {})
        self.assertEqual(["peers", "groups"], [c.name for c in selected.collectors])
        names = [r.name for r in selected.resources]
        self.assertEqual(read(selected), names)
        self.assertLessEqual({"peers", "current_user", "accounts", "groups"}, {*names})

    def test_always(self) -> None:
        """Peers, groups and permissions are always read."""
        self.assertEqual({"peers", "current_user", "groups"}, ALWAYS_READ)
        for names in ([], ["setup_keys"]):
            selected = selection(names, {})
            self.assertEqual(read(selected), [r.name for r in selected.resources])
            self.assertEqual(names, [c.name for c in selected.collectors])

    def test_all(self) -> None:
        """All collectors together read all resources of the table."""
        selected = selection([c.name for c in COLLECTORS], {})
        self.assertEqual(
            [r.name for r in RESOURCE_BY_NAME.values() if r.name != ACCESS_LOG],
            [r.name for r in selected.resources],
        )

    def test_omitted(self) -> None:
        """An omitted resource is not requested, although a collector reads it."""
        selected = selection({"users"}, {}, {"access_tokens"})
        wanted = read(selected)
        wanted.remove("access_tokens")
        self.assertEqual(wanted, [r.name for r in selected.resources])
        self.assertNotIn("access_tokens", selected.intervals)

    def test_off(self) -> None:
        """A resource that is off is not requested, and neither are its dependents."""
        everything = {r.name for r in selection({"agent_network"}, {}).resources}
        for name, gone in (
            ("agent_consumption", {"agent_consumption"}),
            ("agent_providers", {"agent_providers", *RULES.dormant_without}),
        ):
            selected = selection({"agent_network"}, {name: OFF})
            self.assertEqual(everything - gone, {r.name for r in selected.resources})
            self.assertEqual(everything - gone, set(selected.intervals))

    def test_intervals(self) -> None:
        """Intervals apply only to named resources that are read."""
        selected = selection({"peers"}, {"peers": 15, "events": 5})
        usual = {name: RESOURCE_BY_NAME[name].interval for name in read(selected)}
        self.assertEqual({**usual, "peers": 15}, selected.intervals)

"""The Agent Network of a real server, with figures computed by hand."""

import json
from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.agent_bodies import day, wanted_period
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.inventory import AGENT_RESOURCES, Inventory
from api_exporter.netbird.resources import RESOURCE_BY_NAME
from tests.bodies import recorded
from tests.collectors.samples import PREFIX, page, parsed

NOON = datetime(2026, 11, 22, 12, 0, 30, tzinfo=UTC).timestamp()
READ = ("groups", "users", "peers", "agent_providers", *AGENT_RESOURCES)


def known() -> Inventory:
    """Return the inventory of the recorded server."""
    bodies = recorded("recorded_agents")
    inventory = Inventory(now=NOON)
    for name in READ:
        resource = RESOURCE_BY_NAME[name]
        while (path := resource.request_path(inventory, NOON)) is not None:
            body = bodies[resource.path]
            if "end_date" in path:
                days = json.loads(bodies[f"{resource.path}/granularity-day"])
                first, last = wanted_period(None, NOON)
                body = json.dumps(
                    [d for d in days if first <= d["period_start"] <= last]
                ).encode()
            before = getattr(inventory, name) or ()
            decoded = resource.decoder.decode(body, DecodeContext(before, now=NOON))
            inventory = inventory.with_(name, decoded.records)
            if resource.request_path(inventory, NOON) == path:
                break
    return inventory


def samples(family: str, *names: str) -> dict[tuple[str, ...], float]:
    """Return the samples of a family by the values of these labels."""
    found = {}
    for (name, pairs), value in parsed(page(known())):
        if name == PREFIX + family:
            labels = dict(pairs)
            found[tuple(labels[each] for each in names)] = value
    return found


class FiguresTests(SynchronousTestCase):
    def test_ratios(self) -> None:
        """A ratio is the largest share of a bound group or user in the current window.

        Absent: the money of a policy with two windows, windows of a minute, caps of
        groups without target groups, disabled halves, policies and rules.
        """
        expected = {
            ("Engineering", "group", "tokens"): 1_100_000 / 2_000_000,
            ("Engineering", "user", "tokens"): 500_000 / 500_000,
            ("Support", "group", "usd"): 9.99 / 25.50,
            ("Ghost", "group", "tokens"): 0,  # the window before was full
            ("Company ceiling", "user", "usd"): 48.10 / 100,
            ("Contractors", "group", "tokens"): 99_999 / 100_000,
            ("Contractors", "group", "usd"): 9.99 / 10,
            ("Contractors", "user", "usd"): 0.0871 / 5,
            ("Gone and Ben", "user", "tokens"): 50_000 / 50_000,
        }
        found = samples("agent_limit_used_ratio", "limit", "per", "unit")
        self.assertEqual(expected, found)

    def test_month(self) -> None:
        """The month, today and the earlier days, has the sum of the server itself."""
        expected = {
            ("day", "input"): 47103,
            ("day", "output"): 4038,
            ("day", "cached_input"): 33162,
            ("day", "cache_creation"): 0,
            ("month", "input"): 3068308,
            ("month", "output"): 300126,
            ("month", "cached_input"): 530829,
            ("month", "cache_creation"): 36153,
        }
        found = samples("agent_usage_tokens", "period", "kind")
        self.assertEqual(expected, found)

    def test_last_provider(self) -> None:
        """The last provider removes all other records of the Agent Network."""
        left = known().with_("agent_providers", ())
        self.assertEqual([None] * 7, [getattr(left, name) for name in AGENT_RESOURCES])


class PathTests(SynchronousTestCase):
    def test_usage(self) -> None:
        """The earlier days are requested once a day, then today; the first has none."""
        overview = "api/agent-network/usage/overview?granularity=day&start_date="
        usage, inventory = RESOURCE_BY_NAME["agent_usage"], known()
        unread = inventory.with_("agent_usage", None)
        first = NOON + 9 * 86400
        self.assertEqual("2026-12-01", day(first))
        for known_, now, period in (
            (unread, NOON, "2026-11-01T00:00:00Z&end_date=2026-11-21T23:59:59.9999"),
            (inventory, NOON, "2026-11-22T00:00:00Z"),
            (inventory, NOON + 86400, "2026-11-01T00:00:00Z&end_date=2026-11-22T23"),
            (inventory, first, "2026-12-01T00:00:00Z"),
        ):
            path = usage.request_path(known_, now) or ""
            self.assertEqual(overview + period, path[: len(overview + period)])
            self.assertEqual("end_date" in period, "end_date" in path, path)

    def test_denials(self) -> None:
        """Denials of today are requested with one row."""
        self.assertEqual(
            "api/agent-network/access-logs?decision=deny&page_size=1"
            "&start_date=2026-11-22T00:00:00Z",
            RESOURCE_BY_NAME["agent_denials"].request_path(known(), NOON),
        )

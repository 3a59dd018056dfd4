"""Refreshes of the Agent Network: dormant, slowed by their cost, at the end of days."""

import json
import re
from datetime import UTC, datetime
from itertools import pairwise

from prometheus_client import CollectorRegistry, generate_latest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock, deferLater
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.subjects.table import RESOURCE_BY_NAME, RULES
from tests.bodies import recorded
from tests.logbook import logbook
from tests.parts import (
    CURRENT_USER,
    SERVICE_USER,
    account_settings,
    clocks_of,
    request_plan,
)

NOON = datetime(2026, 11, 22, 12, 0, 30, tzinfo=UTC).timestamp()
MINUTE, HOUR = 60, 3600

Reply = bytes | UpstreamError


def _answer(reply: Reply) -> Deferred[ResponseBody]:
    return (
        fail(reply)
        if isinstance(reply, UpstreamError)
        else succeed(ResponseBody(reply))
    )


class Agents(AccountNetwork):
    """An exporter of the recorded server.

    Attributes:
        began: the wall time at the start, by the exporter's clock.
        took: seconds that each response takes, by resource.
        requests: times of the requests by resource, except for the peers.
    """

    def __init__(self, *, begin: float = NOON, **replies: Reply) -> None:
        self.replies: dict[str, Reply] = dict(recorded("recorded_agents"))
        for name, reply in replies.items():
            self.replies[RESOURCE_BY_NAME[name].path] = reply
        self.replies.setdefault(CURRENT_USER, SERVICE_USER)
        self.began = begin
        self.took: dict[str, float] = {}
        self.requests: list[tuple[float, str]] = []
        self.clock = Clock()
        self.registry = CollectorRegistry()
        super().__init__(
            fetch=self.fetch,
            plan=request_plan(
                ("peers", "groups", "users", "agent_network"),
                {"peers": 300.0, "agent_providers": 15 * MINUTE},
            ),
            clocks=clocks_of(self.clock, lambda: self.began + self.clock.seconds()),
            registry=self.registry,
            settings=account_settings(),
        )
        self.startService()
        self.advance(2)

    def fetch(self, path: str, _patience: float = 0) -> Deferred[ResponseBody]:
        plain = path.partition("?")[0]
        if plain.startswith("api/agent-network"):
            self.requests.append((self.clock.seconds(), path.partition("network/")[2]))
        reply = self.replies.get(plain, b"[]")
        if "end_date" in path and not isinstance(reply, UpstreamError):
            reply = b"[]"
        seconds = self.took.get(plain.rpartition("/")[2], 0.0)
        if seconds:
            return deferLater(self.clock, seconds).addCallback(lambda _: _answer(reply))
        return _answer(reply)

    def advance(self, seconds: float) -> None:
        """Let time pass in steps of half a minute, and run all that is due."""
        steps = [30.0] * int(seconds // 30) + [seconds % 30]
        for step in steps:
            self.clock.advance(step)
            for _ in range(60):
                self.clock.advance(0)

    def since(self, begin: float) -> list[str]:
        return [path for at, path in self.requests if at >= begin]

    def times(self, of: str) -> list[float]:
        return [at for at, path in self.requests if path.startswith(of)]

    def sample(self, name: str) -> list[str]:
        lines = self.text().decode().split("\n")
        return [line for line in lines if line.startswith(f"netbird_api_{name}")]

    def resources(self) -> set[str]:
        """Return the resources in the exporter's own metrics."""
        text = generate_latest(self.registry).decode()
        return set(
            re.findall(
                r'api_exporter_(?:resource_\w+|refresh\w+)\{resource="(\w+)"', text
            )
        )


class DormantTests(SynchronousTestCase):
    def test_stock(self) -> None:
        """Without a provider there are two requests an hour, and no series."""
        network = Agents(agent_providers=b"[]")
        for _ in range(16):
            network.advance(15 * MINUTE)
            state = network.states["agent_providers"]
            self.assertEqual("fresh", state.word(NOON + network.clock.seconds()))
        self.assertEqual({"providers"}, {path for _, path in network.requests})
        self.assertEqual(2, len(network.since(HOUR + MINUTE)) // 3)
        self.assertIn(f"Agent Network {2 / 60:.2f}; ", network.describe_cost())
        self.assertEqual(
            set(),
            network.resources() & set(RULES.dormant_without),
            "dormant resources have series",
        )
        self.assertIn("agent_providers", network.resources())

    def test_awakened(self) -> None:
        """A first provider makes all resources due, and the last one ends them."""
        network = Agents(agent_providers=b"[]")
        path = RESOURCE_BY_NAME["agent_providers"].path
        network.replies[path] = recorded("recorded_agents")[path]
        network.advance(31 * MINUTE)
        self.assertLess(0, len(network.sample("agent_limit_used_ratio")))
        network.replies[path] = b"[]"
        network.advance(16 * MINUTE)
        self.assertEqual([], network.sample("agent_limit"))
        self.assertEqual(set(), network.resources() & set(RULES.dormant_without))
        begin = network.clock.seconds()
        network.advance(2 * HOUR)
        self.assertEqual({"providers"}, set(network.since(begin)))

    def test_unknown(self) -> None:
        """The log does not report an unreadable list of providers as an empty one."""
        book, network = logbook(self), Agents()
        for name in ("agent_providers", *RULES.dormant_without):
            path = RESOURCE_BY_NAME[name].path
            network.replies[path] = UpstreamError("http_5xx", "500: no")
        network.advance(2 * HOUR)
        self.assertEqual("failing", network.states["agent_providers"].word(0))
        self.assertNotIn("agent_policies", network.states)
        self.assertIn("no provider of the Agent Network is known", str(book.lines()))

    def test_role(self) -> None:
        """Findings wait for no list that the user's new role withholds."""
        users = json.loads(recorded("recorded_agents")["api/users"])
        [me] = [user["id"] for user in users if user["is_current"]]
        network = Agents(current_user=json.dumps({"id": me}).encode())
        network.replies["api/groups"] = b"[]"
        path = RESOURCE_BY_NAME["agent_policies"].path
        network.replies[path] = UpstreamError("forbidden", "403")
        modules = {"agent_network.providers": {"read": False}}
        role = {"id": me, "permissions": {"modules": modules}}
        network.replies[CURRENT_USER] = json.dumps(role).encode()
        network.advance(HOUR)
        self.assertEqual({}, network.findings.waits)
        self.assertEqual(set(), network.resources() & set(RULES.dormant_without))


class CostTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """A list that was never read costs as much as one with records."""
        network = Agents(agent_providers=UpstreamError("http_5xx", "500: no"))
        self.assertIn(f"Agent Network {4 / 60:.2f}; ", network.describe_cost())

    def test_rest(self) -> None:
        """Consumption rests for 100 times the duration of its response."""
        long = UpstreamError("too_large", "the body is longer than 33554432 bytes")
        for took, network, is_up in (
            (12.0, Agents(), True),
            (5.0, Agents(agent_consumption=long), False),
        ):
            network.took["consumption"] = took
            network.advance(3 * HOUR)
            times = network.times("consumption")[1:]
            self.assertLessEqual(3, len(times))
            for first, second in pairwise(times):
                self.assertGreaterEqual(second - first, 100 * took)
            state = network.states["agent_consumption"]
            self.assertIs(is_up, state.up)
            if is_up:
                self.assertLessEqual(1200, state.interval)

    def test_rest_after_failure(self) -> None:
        """After a timeout it rests for an interval at most: its metrics may expire."""
        error = UpstreamError("timeout", "no complete response within 30 s")
        network = Agents(agent_consumption=error)
        network.took["consumption"] = 30.0
        network.advance(HOUR)
        self.assertLessEqual(5, len(network.times("consumption")))

    def test_expiry(self) -> None:
        """The log has the time after which the metrics of a slow resource expire."""
        book = logbook(self)
        network = Agents()
        network.took["consumption"] = 30.0
        network.advance(HOUR)
        path = RESOURCE_BY_NAME["agent_consumption"].path
        network.replies[path] = UpstreamError("http_5xx", "500: no")
        network.advance(3 * HOUR)
        [line] = [one for one in book.lines() if "consumption have expired" in one]
        self.assertIn("no successful refresh for 4500 s", line)


class EndsTests(SynchronousTestCase):
    def hourly(self, network: Agents) -> str:
        """Return what Ben has used of an hour's limit."""
        [line] = [
            line
            for line in network.sample("agent_limit_used_ratio")
            if 'window_seconds="3600"' in line and 'per="user"' in line
        ]
        return line.rpartition(" ")[2]

    def test_window(self) -> None:
        """A window ends on the page without a request, at its end."""
        network = Agents(begin=NOON + 53 * MINUTE)  # it ends at 13:00
        network.advance(MINUTE)
        self.assertEqual("1", self.hourly(network))
        asked = len(network.times("consumption"))
        network.advance(5 * MINUTE + 20)
        self.assertEqual("1", self.hourly(network))
        network.advance(10)
        self.assertEqual("0", self.hourly(network))
        self.assertEqual(asked, len(network.times("consumption")))
        found = {one.alert for one in network.findings.found.findings}
        # Others of the day go on.
        self.assertIn("NetBirdAgentBudgetNearlyUsedUp", found)

    def test_clock_set(self) -> None:
        """After the clock was set, the same response has other current windows."""
        network = Agents(begin=NOON - 24 * HOUR)
        self.assertEqual("0", self.hourly(network))
        network.began = NOON
        network.advance(12 * MINUTE)
        self.assertEqual("1", self.hourly(network))

    def test_usage(self) -> None:
        """Earlier days are requested once a day, today each time; 0 from midnight."""
        network = Agents(begin=NOON + 11 * HOUR)
        earlier = "usage/overview?granularity=day&start_date=2026-11-01"
        self.assertEqual(1, len(network.times(earlier)))
        network.advance(58 * MINUTE)
        self.assertEqual(1, len(network.times(earlier)))
        for name in ("agent_usage", "agent_denials"):
            network.replies[RESOURCE_BY_NAME[name].path] = UpstreamError(
                "http_5xx", "500: no"
            )
        self.assertIn('{period="day",kind="input"} 47103', self.usage(network))
        network.advance(2 * MINUTE)
        self.assertIn('{period="day",kind="input"} 0', self.usage(network))
        self.assertIn('{period="month",kind="input"} 47103', self.usage(network))
        denied = network.sample("agent_denied_requests")
        self.assertEqual(["netbird_api_agent_denied_requests 0"], denied)
        self.assertIn("end_date=2026-11-22T23:59:59", str(network.requests))

    def usage(self, network: Agents) -> str:
        return "\n".join(network.sample("agent_usage_tokens"))

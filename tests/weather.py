"""An exporter with its real client, a fake clock, and an upstream with outages."""

from collections.abc import Callable, Iterator, Mapping
from random import Random

from prometheus_client import CollectorRegistry
from treq.testing import RequestTraversalAgent
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.error import ConnectionRefusedError as NobodyListens
from twisted.internet.task import Clock, deferLater
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
from twisted.web.resource import Resource
from twisted.web.server import Request
from zope.interface import implementer

from api_exporter.clocks import Clocks
from api_exporter.netbird.resources import PEERS
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.network import AccountNetwork, NetworkOptions
from api_exporter.settings import parsers
from api_exporter.settings.token import Token
from api_exporter.upstream.fetcher import Fetcher, FetchOptions
from simulation.company.network import SimulatedNetwork
from tests.bodies import body
from tests.parts import CURRENT_USER, request_plan
from tests.scripted import refusal
from tests.token_bucket import TokenBucket

START = 1_800_000_000
LATENCY = 0.05
TIMEOUT = 30.0

WELL, REFUSED, HUNG, RESET, WEB_PAGE = 200, 0, -1, -2, -3
"""States of the upstream; any other is the status that it answers with."""

Weather = Callable[[str, float], int]
"""The state in which a path is at a time in seconds since the start."""


class _Answers(Resource):
    """The responses of the upstream; the state is in a header."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self._network = SimulatedNetwork(20)
        # No provider, as most have none: what needs one is dormant.
        self._bodies = {f"/{CURRENT_USER}": body("current_user")}
        self._bodies["/api/agent-network/providers"] = b"[]"

    def render(self, request: Request) -> bytes:
        [state] = request.requestHeaders.getRawHeaders("state") or [""]
        path = request.path.decode()
        if path not in self._bodies:
            self._bodies[path] = b"".join(self._network.body(path, START) or ())
        if int(state) == WEB_PAGE:
            request.setHeader(b"Content-Type", b"text/html")
            return b"<html>Sign in</html>"
        request.setResponseCode(int(state))
        for wait in request.requestHeaders.getRawHeaders("wait") or ():
            request.setHeader("Retry-After", wait)
        if int(state) != WELL:
            plain = b"text/plain" if state == "404" else b"application/json"
            request.setHeader(b"Content-Type", plain)
            return b"404 page not found" if state == "404" else refusal(int(state))
        request.setHeader(b"Content-Type", b"application/json")
        return self._bodies[path]


@implementer(IAgent)
class _Agent:
    """Answers after a while, or never; refuses as a closed port does."""

    def __init__(self, clock: Clock, state: Callable[[str], int]) -> None:
        self._clock = clock
        self._state = state
        self._answers = _Answers()
        self.retry_after = 0

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        _producer: IBodyProducer | None = None,
    ) -> Deferred[IResponse]:
        path = uri.decode().partition("/api/")[2]
        state = self._state(f"api/{path}")
        if state == HUNG:
            return Deferred()

        async def answer() -> IResponse:
            await deferLater(self._clock, LATENCY)
            if state == REFUSED:
                raise NobodyListens
            if state == RESET:
                raise ConnectionLost
            sent = (headers or Headers()).copy()
            sent.setRawHeaders("state", [str(state)])
            if state in {429, 503} and self.retry_after:
                sent.setRawHeaders("wait", [str(self.retry_after)])
            agent = RequestTraversalAgent(self._answers)  # it keeps each connection
            response: Deferred[IResponse] = agent.request(method, uri, sent)
            agent.flush()
            self._clock.callLater(0, agent.flush)  # the body, on request
            return await response

        return Deferred.fromCoroutine(answer())


def events_until(clock: Clock, end: float) -> Iterator[None]:
    """Let time pass. Yield after each event."""
    while due := [call.getTime() for call in clock.getDelayedCalls()]:
        if min(due) > end:
            break
        clock.advance(max(0.0, min(due) - clock.seconds()))
        yield
    clock.advance(max(0.0, end - clock.seconds()))


class World(AccountNetwork):
    """All services of an account, with simulated outages.

    Args:
        clock: shared with other accounts, if there are any.
        budget: the budget of its token, which others may share.

    Attributes:
        requests: all requests that reached the upstream, as time, path and status.
        oldest: the maximum age of the peers' metrics in seconds.
        agent: its `retry_after` is sent with each 429 and 503.
    """

    def __init__(
        self,
        weather: Weather,
        *,
        seed: int = 0,
        intervals: Mapping[str, float] | None = None,
        limiter: TokenBucket | None = None,
        metrics_max_age: float | None = None,
        clock: Clock | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.clock = Clock() if clock is None else clock
        self.requests: list[tuple[float, str, int]] = []
        self.oldest = 0.0
        self._weather = weather
        self._limiter = limiter
        chance = Random(seed)
        self.agent = _Agent(self.clock, self._state)
        upstream = Fetcher(
            agent=self.agent,
            token=lambda: Token("secret"),
            on_attempt=self.count_attempt,
            on_silent=self.on_silent,
            options=FetchOptions(
                url="http://netbird.example", timeout=TIMEOUT, attempts=3
            ),
            clocks=Clocks(self.clock, self.now, chance.random),
        )
        super().__init__(
            fetch=upstream.fetch,
            plan=request_plan(parsers.collectors("default"), intervals, budget=budget),
            clocks=Clocks(self.clock, self.now, chance.random),
            registry=CollectorRegistry(),
            options=NetworkOptions(metrics_max_age=metrics_max_age),
        )

    def now(self) -> float:
        return START + self.clock.seconds()

    def _state(self, path: str) -> int:
        state = self._weather(path, self.clock.seconds())
        if state == REFUSED:
            return state
        if state == WELL and self._limiter and self._limiter.take(self.now()):
            state = 429
        self.requests.append((self.clock.seconds(), path, state))
        return state

    def start(self) -> "World":
        self.startService()
        return self

    def until(self, end: float) -> "World":
        for _ in events_until(self.clock, end):
            age = self.age(PEERS)
            self.oldest = max(self.oldest, self.clock.seconds() if age is None else age)
        return self

    def age(self, name: str) -> float | None:
        """Return seconds since a resource was last read; None if it never was."""
        success = self.states[name].last_success
        return None if success is None else self.now() - success

    def unread_since(self, at: float) -> list[str]:
        """Return what was not read since a time in seconds since the start."""
        known = self.states.items()
        return [n for n, one in known if (one.last_success or 0.0) < START + at]

    def fresh_at(self, at: float, max_seconds: float) -> float:
        """Run until all was read since a time; return the seconds from then."""
        while late := self.unread_since(at):
            if self.clock.seconds() > at + max_seconds:
                raise AssertionError(f"not fresh {max_seconds} s after {at}: {late}")
            self.until(self.clock.seconds() + 0.25)
        return self.clock.seconds() - at

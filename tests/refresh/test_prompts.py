"""A prompt in the access log of the Agent Network is published nowhere."""

import io
import json
import sys

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogLevel

from api_exporter.checking.report import print_check
from api_exporter.checking.survey import read_resources
from api_exporter.ports import ResponseBody
from api_exporter.refresh.network import AccountNetwork
from api_exporter.settings.token import Token
from api_exporter.upstream.fetcher import Fetcher, FetchOptions
from api_exporter.web.tree import tree
from api_exporter.world import World
from tests.bodies import STOCK_TIME, recorded
from tests.logbook import logbook
from tests.parts import quota, site_context
from tests.scripted import Answer, ScriptedApi, says
from tests.web.served import ServedTestCase

PROMPT = "0canary0: how do I tell my employer that I am ill"
ROW = json.dumps(
    {"id": "a", "decision": "deny", "user_id": PROMPT, "prompt": PROMPT}
).encode()


class PromptTests(ServedTestCase):
    def denied(self, body: bytes) -> tuple[str, AccountNetwork]:
        """Return all output and state of an exporter of such denied requests."""
        book = logbook(self)
        answers: dict[str, Answer | list[Answer]] = {
            path.rpartition("/")[2]: says(200, sent)
            for path, sent in recorded("recorded_agents").items()
            if "agent-network" in path or path in {"api/peers", "api/users"}
        }
        api = ScriptedApi(**{**answers, "access-logs": says(200, body)})
        agent, clock = api.agent(), Clock()

        def now() -> float:
            return STOCK_TIME + clock.seconds()

        def fetch(path: str, patience: float) -> Deferred[ResponseBody]:
            return fetcher.fetch(path, patience)

        network = AccountNetwork(
            fetch=fetch,
            quota=quota(("peers", "groups", "users", "agent_network")),
            world=World(clock, now, lambda: 0.5),
            registry=CollectorRegistry(),
        )
        fetcher = Fetcher(
            agent=agent,
            token=lambda: Token("secret"),
            on_attempt=network.count_attempt,
            options=FetchOptions(
                url="http://netbird.example", timeout=30.0, attempts=2
            ),
            world=World(clock, now, lambda: 0.5),
        )

        def pass_time() -> None:
            for _ in range(200):
                clock.advance(0.5)
                agent.flush()

        network.startService()
        pass_time()
        asked = [path for path, _ in api.requests if path.endswith("access-logs")]
        self.assertNotEqual([], asked)
        context = site_context(clock, now=now)
        self.tree = tree({"": network}, context)
        pages = ["/", "/findings", "/metrics", "/health", "/ready", "/status.json"]
        pages.append("/sd?port=9100")
        texts = [self.request(path)[2].decode() for path in pages]
        printed = io.StringIO()
        self.patch(sys, "stdout", printed)
        done = Deferred.fromCoroutine(
            print_check("", read_resources(network, clock), network, now, "/runbooks")
        )
        pass_time()
        self.successResultOf(done)
        network.stopService()
        self.assertIn("agent-network/access-logs", printed.getvalue())
        lines = book.lines(LogLevel.debug)
        self.assertIn("agent_denials", "\n".join(lines))
        texts += [printed.getvalue(), repr(network.inventory)]
        return "\n".join([*texts, *lines]), network

    def test_counted(self) -> None:
        """Denied requests are counted, and their prompts are published nowhere."""
        texts, network = self.denied(b'{"data":[%b],"total_records":41}' % ROW)
        self.assertIn(b"netbird_api_agent_denied_requests 41", network.text())
        self.assertNotIn(PROMPT[:8], texts)

    def test_broken(self) -> None:
        """A response that cannot be decoded does not publish a prompt, either."""
        for body in (
            b'{"data":[%b' % ROW,
            b'{"data":[%b],"total_records":"%b"}' % (ROW, PROMPT.encode()),
            b"[%b]" % ROW,
            ROW.replace(b"{", b"{\xff", 1),
        ):
            texts, network = self.denied(body)
            self.assertNotIn(PROMPT[:8], texts)
            error = network.telemetry.freshness["agent_denials"].error
            self.assertEqual("decode", error and error.reason)

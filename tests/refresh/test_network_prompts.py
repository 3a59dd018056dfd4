"""A prompt in the access log of the Agent Network is published nowhere."""

import io
import json

from twisted.logger import LogLevel

from api_exporter.checking.report import report_lines
from api_exporter.web.tree import tree
from tests.logbook import logbook
from tests.parts import site_context
from tests.refresh.test_network_agents import NOON, Agents
from tests.web.served import ServedTestCase

PROMPT = "0canary0: how do I tell my employer that I am ill"
ROW = json.dumps(
    {"id": "a", "decision": "deny", "user_id": PROMPT, "prompt": PROMPT}
).encode()


class PromptTests(ServedTestCase):
    def denied(self, body: bytes) -> tuple[str, Agents]:
        """Return all output and state of an exporter of such denied requests."""
        book, network = logbook(self), Agents(agent_denials=body)

        def now() -> float:
            return NOON + network.clock.seconds()

        context = site_context(network.clock, now=now)
        self.tree = tree({"": network}, context, lookup=False)
        pages = ["/", "/findings", "/metrics", "/health", "/ready", "/status.json"]
        pages.append("/sd?port=9100")
        texts = [self.request(path)[2].decode() for path in pages]
        printed = io.StringIO()
        network.advance(60)
        printed.writelines(report_lines(network, now(), "/runbooks"))
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
            error = network.states["agent_denials"].error
            self.assertEqual("decode", error and error.reason)

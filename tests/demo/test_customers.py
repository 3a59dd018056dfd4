"""Many simulated accounts."""

import json

from treq import content
from treq.testing import RequestTraversalAgent
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from api_exporter.demo.api import DemoApi
from api_exporter.demo.server import customers, tokens
from api_exporter.settings.token import Token

NOON = 1_800_014_400.0

FIRST, SECOND, THIRD, FOURTH, FIFTH = tokens(5).values()


class CustomersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.api = DemoApi(customers(5, 65), now=lambda: NOON)

    def ask(self, credentials: str) -> tuple[int, object]:
        agent = RequestTraversalAgent(self.api)
        headers = Headers({"Authorization": [credentials]})
        url = b"http://demo.example/api/peers"
        asked = agent.request(b"GET", url, headers)
        agent.flush()
        response = self.successResultOf(asked)
        body = content(response)
        agent.flush()
        return response.code, json.loads(self.successResultOf(body))

    def test_sizes(self) -> None:
        """Each valid token gives access to a network of its own size."""
        sizes = []
        for token in (FIRST, THIRD, FOURTH):
            status, peers = self.ask(f"Bearer {token}")
            self.assertEqual(200, status)
            assert isinstance(peers, list)
            sizes.append(len(peers))
        self.assertEqual(3, len(set(sizes)))
        self.assertLess(max(sizes), 60)

    def test_dead_tokens(self) -> None:
        """Two tokens are refused as NetBird refuses deleted ones."""
        for token in (SECOND, FIFTH):
            status, refusal = self.ask(f"Bearer {token}")
            self.assertEqual(404, status)
            assert isinstance(refusal, dict)
            self.assertIn("invalid token", refusal["message"])

    def test_names(self) -> None:
        """Names sort as their numbers, and tokens are well-formed."""
        self.assertEqual(["customer-001", "customer-002"], list(tokens(2)))
        self.assertFalse(Token(tokens(500)["customer-500"]).mistyped())

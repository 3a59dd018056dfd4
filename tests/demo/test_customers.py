"""Many simulated accounts."""

import json

from treq import content
from treq.testing import RequestTraversalAgent
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from api_exporter.demo.customers import Customers, dead, names, token
from api_exporter.settings.credential import Token

NOON = 1_800_014_400.0


class CustomersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.customers = Customers(5, peers=65, limit=(6, 4), now=lambda: NOON)

    def ask(self, credentials: str) -> tuple[int, object]:
        agent = RequestTraversalAgent(self.customers)
        headers = Headers({"Authorization": [credentials]})
        url = b"http://demo.example/api/peers"
        asked = agent.request(b"GET", url, headers)
        agent.flush()
        response = self.successResultOf(asked)
        body = content(response)
        agent.flush()
        return response.code, json.loads(self.successResultOf(body))

    def test_sizes(self) -> None:
        """Each living token opens a network of its own size."""
        sizes = []
        for number in {1, 2, 3, 4, 5} - dead(5):
            status, peers = self.ask(f"Bearer {token(number)}")
            self.assertEqual(200, status)
            assert isinstance(peers, list)
            sizes.append(len(peers))
        self.assertEqual(3, len(set(sizes)))
        self.assertLess(max(sizes), 60)

    def test_dead_tokens(self) -> None:
        """Two tokens are refused as NetBird refuses deleted ones."""
        self.assertEqual(2, len(dead(5)))
        for number in dead(5):
            status, refusal = self.ask(f"Bearer {token(number)}")
            self.assertEqual(404, status)
            assert isinstance(refusal, dict)
            self.assertIn("invalid token", refusal["message"])

    def test_limits(self) -> None:
        """One token's limit is not another's."""
        found = [self.ask(f"Bearer {token(1)}")[0] for _ in range(5)]
        self.assertEqual([200] * 4 + [429], found)
        self.assertEqual(200, self.ask(f"Bearer {token(3)}")[0])

    def test_names(self) -> None:
        """Names sort as the numbers do, and tokens are well-formed."""
        self.assertEqual(["customer-001", "customer-002"], names(2))
        self.assertFalse(Token(token(500)).mistyped())

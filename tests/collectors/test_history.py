"""Equal responses make equal pages, with any earlier responses."""

import json
from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.table import COLLECTORS
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import RESOURCE_BY_NAME
from tests.collectors.samples import page, parsed

Answer = dict[str, Sequence[object]]

NETWORKS = [
    {"id": "n1", "name": "one", "resources": ["r"]},
    {"id": "n2", "name": "two", "resources": ["r"]},
]
USERS = [{"id": "u1", "is_current": True}, {"id": "u2", "is_current": True}]
ACCOUNTS = [
    {
        "id": id_,
        "settings": {
            "peer_login_expiration_enabled": True,
            "peer_login_expiration": seconds,
        },
    }
    for id_, seconds in (("a1", 60), ("a2", 3600))
]
PEER = {
    "id": "p",
    "user_id": "u1",
    "login_expiration_enabled": True,
    "last_login": "2026-01-01T00:00:00Z",
}


def after(*answers: Answer) -> Inventory:
    """Return the inventory after these responses, one after the other."""
    known = Inventory()
    for answer in answers:
        for name, listed in answer.items():
            body, before = json.dumps(listed).encode(), getattr(known, name) or ()
            found = (
                RESOURCE_BY_NAME[name]
                .decoder.decode(body, DecodeContext(before))
                .records
            )
            known = known.with_(name, found)
    return known


class HistoryTests(SynchronousTestCase):
    def same(self, answer: Answer, *before: Answer) -> None:
        once, later = after(answer), after(*before, answer)
        self.assertEqual(*(dict(parsed(page(k, COLLECTORS))) for k in (once, later)))

    def test_networks(self) -> None:
        """A resource in two networks is in the last network of the response."""
        answer: Answer = {"network_resources": [{"id": "r"}], "networks": NETWORKS}
        self.same(answer, {"networks": NETWORKS[1:]})
        self.assertIn('network_id="n2"', page(after(answer)))

    def test_current_user(self) -> None:
        """Tokens of the same one of two current users are requested, in any order."""
        answer: Answer = {"users": USERS, "access_tokens": [{"id": "t"}]}
        self.assertEqual("u1", after(answer).current_user_id)
        for before in (USERS[1:], [USERS[1], USERS[0]]):
            self.assertEqual("u1", after({"users": before}, answer).current_user_id)

    def test_accounts(self) -> None:
        """The first of two accounts determines the expiry of logins."""
        self.same({"peers": [PEER], "accounts": ACCOUNTS}, {"accounts": ACCOUNTS[1:]})

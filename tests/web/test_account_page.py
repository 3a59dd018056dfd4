"""Every page of the table, over HTTP: one account, three, and a limited client."""

from collections.abc import Mapping

from twisted.web.http import BAD_REQUEST as BAD
from twisted.web.http import FORBIDDEN, NOT_FOUND, OK

from api_exporter.web.account_page import Networks
from api_exporter.web.tree import tree
from tests.access.test_site import LIMITED, TOKEN, AccessTestCase
from tests.web.watched import Watched

EVERYWHERE, OF_ACCOUNT, SHARED = (OK, OK), (BAD, OK), (OK, None)

PAGES: Mapping[str, tuple[tuple[int, int | None], int]] = {
    "": (EVERYWHERE, OK),
    "findings": (OF_ACCOUNT, FORBIDDEN),
    "health": (EVERYWHERE, OK),
    "lookup": (OF_ACCOUNT, FORBIDDEN),
    "lookup.csv": (OF_ACCOUNT, FORBIDDEN),
    "lookup.json": (OF_ACCOUNT, FORBIDDEN),
    "metrics": (EVERYWHERE, FORBIDDEN),
    "ready": (EVERYWHERE, OK),
    "runbooks": (SHARED, OK),
    "sd": (OF_ACCOUNT, FORBIDDEN),
    "sd/accounts": ((OK, None), OK),
    "status.json": (EVERYWHERE, OK),
    "status.schema.json": (SHARED, OK),
}
"""The status of three accounts without and with a name (None: it takes none), and of a
limited client without a name.
"""

QUERIES = {"sd": "port=9100", "lookup": "name=nothing"}
"""The parameters that a page needs."""


class EveryPageTests(AccessTestCase):
    def watch(self, *names: str) -> set[str]:
        """Serve the pages of accounts; return their paths."""
        networks = {name: Watched(name=name, lookup=True).start() for name in names}
        some: Networks = networks
        context = next(iter(networks.values())).context
        pages = tree(some, context, lookup=True)
        self.tree = pages
        tokens = f"{TOKEN}\naccount=acme {LIMITED}\n"
        self.served = self.site(tokens=tokens)
        return set(pages.pages)

    def status(self, path: str, token: str, account: str = "") -> int:
        """Return the status of a page; that of another account is never in it."""
        query = filter(None, (account and f"account={account}", QUERIES.get(path)))
        url = "?".join(filter(None, (f"/{path}", "&".join(query))))
        answer = self.ask(self.served, url, f"Bearer {token}")
        if token == LIMITED and path not in {"runbooks", "status.schema.json"}:
            self.assertNotIn("beta", answer.body, url)
        missing = (
            answer.status == NOT_FOUND and "has the address or name" in answer.body
        )
        return OK if path == "lookup" and missing else answer.status

    def test_one(self) -> None:
        """One account needs no name, and refuses one."""
        paths = self.watch("")
        self.assertEqual({*PAGES} - {"sd/accounts"}, paths)
        for path in paths:
            self.assertEqual(OK, self.status(path, TOKEN), path)
            named = OK if PAGES[path][0] == SHARED else BAD
            self.assertEqual(named, self.status(path, TOKEN, "acme"), path)

    def test_three(self) -> None:
        """A page of three accounts is of all of them, or needs a name."""
        self.assertEqual({*PAGES}, self.watch("acme", "beta", "gamma"))
        for path, ((without, named), _) in PAGES.items():
            self.assertEqual(without, self.status(path, TOKEN), path)
            if named is not None:
                self.assertEqual(named, self.status(path, TOKEN, "acme"), path)
                self.assertEqual(NOT_FOUND, self.status(path, TOKEN, "other"), path)

    def test_limited(self) -> None:
        """A limited client sees its own account on each page, and no other."""
        self.watch("acme", "beta", "gamma")
        for path, ((_, named), without) in PAGES.items():
            self.assertEqual(without, self.status(path, LIMITED), path)
            if named is not None:
                self.assertEqual(named, self.status(path, LIMITED, "acme"), path)
            self.assertEqual(NOT_FOUND, self.status(path, LIMITED, "beta"), path)

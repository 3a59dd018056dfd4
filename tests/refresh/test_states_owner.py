"""A new token may be of another user or account."""

import re

from msgspec import Struct

from api_exporter.demo.go_json import encode
from simulation.company.network import SimulatedNetwork
from simulation.company.people import EXPORTER_ID
from simulation.exporter import RunningExporter
from simulation.link import Response, complete
from tests.test_live import NOW, Api, LiveTestCase

WARNING = "warning the token is of another account: all records are removed"
CURRENT, LISTED = "api/users/current", "api/accounts"
MODULES = "settings", "peers", "users", "groups"
ONE = SimulatedNetwork(20)


class TokenOwner(Struct):
    """The owner of a token.

    Attributes:
        ids: how the ids of the account begin.
        user: the user's id; "" for a service user, which may not read it.
        readable: the permissions of the user; "settings" are those to read accounts.
        peers: how many of them the user sees.
    """

    ids: str
    user: str = ""
    readable: tuple[str, ...] = MODULES
    peers: int = 20

    def body(self, path: str) -> bytes | None:
        """Return the body of a path; None if it is refused."""
        modules = {name: {"read": name in self.readable} for name in MODULES}
        permissions = {"modules": modules}
        if path == CURRENT:
            current = {"id": self.user, "role": "admin", "permissions": permissions}
            return encode(current) if self.user else None
        if path == LISTED and "settings" not in self.readable:
            return None
        user = self.user or "service"
        path = path.replace(f"/{user}/", f"/{EXPORTER_ID}/")
        network = ONE if self.peers == 20 else SimulatedNetwork(self.peers)
        body = b"".join(network.body(f"/{path}", NOW) or ()).decode()
        body = body.replace(EXPORTER_ID, user).replace('"d2', f'"{self.ids}')
        return body.encode() or None


SERVICE, OTHER_SERVICE = TokenOwner("d2"), TokenOwner("e2")
ADMIN, OTHER_ADMIN = TokenOwner("d2", "me"), TokenOwner("e2", "you")
VIEWER = TokenOwner("d2", "me", ("peers", "users"))
OTHER_VIEWER = TokenOwner("e2", "you", ("peers", "users"))


class OwnersApi(Api):
    """An API that answers each token as its owner may read.

    Attributes:
        owners: by token.
        seconds: until the response of a path, if it is not a tenth of a second.
        failing: the paths that fail.
        refused: the paths that no token may read.
    """

    def __init__(self, owners: dict[str, TokenOwner]) -> None:
        super().__init__()
        self.owners = owners
        self.seconds: dict[str, float] = {}
        self.failing: set[str] = set()
        self.refused: set[str] = set()

    def respond(self, path: str, token: str) -> Response:
        self.requests.append(f"{token} {path}")
        path = path.partition("?")[0]
        body, status = self.owners[token].body(path), 200
        if path in self.failing:
            body, status = b'{"message":"down","code":500}', 500
        elif body is None or path in self.refused:
            body, status = b'{"message":"no permission","code":403}', 403
        return complete(status, body, seconds=self.seconds.get(path, 0.1))


class OwnerTests(LiveTestCase):
    api: OwnersApi

    def setUp(self) -> None:
        super().setUp()
        self.api = OwnersApi({})
        self.ended: list[RunningExporter] = []

    def begin(self, seconds: float = 50.0, **owners: TokenOwner) -> None:
        """Start with the first token, in a file."""
        if self.api.owners:
            self.end()
        self.api = OwnersApi(owners)
        self.token = self.folder / "token"
        self.token.write_text("one")
        self.environ.pop("ACCOUNTS_DIR", None)
        self.environ["UPSTREAM_API_TOKEN_FILE"] = str(self.token)
        self.start(seconds=seconds)

    def end(self) -> None:
        if self.exporter not in self.ended:
            self.ended.append(self.exporter)
            super().end()

    def wait_for(self, request: str) -> None:
        end = self.machine.seconds() + 3600
        while request not in self.api.requests[-1:] and self.machine.seconds() < end:
            self.advance(0.05)

    def accounts(self) -> set[str]:
        """Return the accounts whose records are published."""
        return {ids for ids in ("d2", "e2") if f'"{ids}' in self.page("")}

    def series(self) -> set[str]:
        lines = self.page("").splitlines()
        return {line.rpartition(" ")[0] for line in lines if line[0] == "n"}

    def peers(self) -> list[str]:
        lines = self.page("").splitlines()
        return [line for line in lines if line.startswith("netbird_api_peers{")]

    def check_only(self, ids: str) -> None:
        self.assertEqual({ids}, self.accounts())
        lines = [line for line in self.book.lines() if line.startswith("warning")]
        self.assertEqual(WARNING, lines[-1])

    def test_failing(self) -> None:
        """A list that failed for long is soon retried in another account."""
        self.begin(one=SERVICE, two=OTHER_SERVICE)
        self.api.failing = {"api/networks"}
        self.advance(3600)
        self.token.write_text("two")
        self.wait_for("two api/networks")
        self.api.failing = set()
        self.advance(15)
        self.assertLess(1, self.api.requests.count("two api/networks"))

    def test_refused(self) -> None:
        """A list that was refused for long is soon retried in another account."""
        self.begin(0.0, one=SERVICE, two=OTHER_SERVICE)
        self.api.refused = {"api/networks"}
        self.advance(600)
        self.token.write_text("two")
        self.wait_for("two api/networks")
        self.api.refused = set()
        self.advance(60)
        self.assertLess(1, self.api.requests.count("two api/networks"))

    def test_other_account(self) -> None:
        """Another account removes all records, for all permissions of both users."""
        for former, new in (
            (SERVICE, OTHER_SERVICE),
            (SERVICE, OTHER_VIEWER),
            (ADMIN, OTHER_SERVICE),
            (ADMIN, OTHER_VIEWER),
            (VIEWER, OTHER_SERVICE),
            (VIEWER, OTHER_ADMIN),
            (VIEWER, OTHER_VIEWER),
        ):
            self.begin(one=former, two=new)
            self.token.write_text("two")
            self.advance(60)
            self.check_only("e2")

    def test_same_account(self) -> None:
        """No series is missing for a moment. The two lists are requested once."""
        for former, new in (
            (SERVICE, SERVICE),
            (ADMIN, ADMIN),
            (VIEWER, VIEWER),
            (ADMIN, SERVICE),
            (SERVICE, ADMIN),
        ):
            self.begin(one=former, two=new)
            own = re.compile('_access_token_|="me"|="service"')
            before = {one for one in self.series() if not own.search(one)}
            self.token.write_text("two")
            requests = len(self.api.requests)
            for _ in range(290):
                self.advance(0.1)
                self.assertEqual(set(), before - self.series())
            paths = [one.split()[1] for one in self.api.requests[requests:]]
            for path in CURRENT, LISTED:
                self.assertLessEqual(paths.count(path), 1, paths)
        self.assertNotIn("warning", str(self.book.lines()))

    def test_less_withheld(self) -> None:
        """A service user's token ends what the former user may not read."""
        for ids in ("d2", "e2"):
            self.begin(one=TokenOwner("d2", "me", ()), two=TokenOwner(ids))
            self.assertNotIn(" netbird_api_peer_connected ", self.page(""))
            self.token.write_text("two")
            self.advance(60)
            self.assertIn(" netbird_api_peer_connected ", self.page(""))

    def test_more_withheld(self) -> None:
        """Peers that the new user sees in part are not published for a moment."""
        self.begin(one=ADMIN, two=TokenOwner("d2", "you", ("settings", "users"), 5))
        before = self.peers()
        self.token.write_text("two")
        for _ in range(300):
            self.advance(0.2)
            self.assertIn(self.peers(), ([], before))
        self.assertEqual([], self.peers())

    def test_former_requests(self) -> None:
        """A response to a former token does not show the owner of the new one."""
        for path in (LISTED, CURRENT):
            self.begin(one=ADMIN, two=OTHER_VIEWER)
            self.api.seconds[path] = 25.0
            self.wait_for(f"one {path}")
            self.token.write_text("two")
            self.advance(90)
            self.check_only("e2")

    def test_back(self) -> None:
        """The former token may come back while another one's response is awaited."""
        self.environ["REFRESH_INTERVALS"] = "peers=10s"
        self.begin(one=ADMIN, two=OTHER_ADMIN)
        self.token.write_text("two")
        self.api.seconds[LISTED] = 29.0
        self.wait_for(f"two {LISTED}")
        self.token.write_text("one")
        self.advance(120)
        self.check_only("d2")

    def test_budget(self) -> None:
        """The owner is known first, though a scarce budget makes all else late."""
        self.environ["UPSTREAM_RATE_LIMIT"] = "2/2"
        self.begin(seconds=1200, one=SERVICE, two=OTHER_SERVICE)
        self.token.write_text("two")
        self.advance(150)
        self.assertIn(f"two {LISTED}", self.api.requests)
        self.assertEqual({"e2"}, self.accounts())

    def test_unknown_for_a_while(self) -> None:
        """While the owner cannot be read, nothing is removed, not even by a reload."""
        self.begin(one=ADMIN, two=OTHER_VIEWER)
        self.api.failing = {CURRENT}
        self.token.write_text("two")
        self.advance(100)
        self.assertIn("d2", self.accounts())
        self.environ["HTTP_TIMEOUT"] = "20s"
        self.exporter.reload()
        self.advance(100)
        self.assertIn("d2", self.accounts())
        self.api.failing = set()
        self.advance(400)
        self.check_only("e2")

    def test_reload(self) -> None:
        """A reload notices a replaced file before any record is published."""
        self.begin(one=SERVICE, two=OTHER_SERVICE)
        self.api.seconds[LISTED] = 3.0
        self.token.write_text("two")
        self.environ["HTTP_TIMEOUT"] = "20s"
        self.exporter.reload()
        for _ in range(300):
            self.advance(0.2)
            self.assertNotEqual({"d2", "e2"}, self.accounts())
        self.check_only("e2")

    def test_held(self) -> None:
        """Peers of the former token that wait for its user are never published."""
        self.begin(seconds=0, one=SERVICE, two=OTHER_SERVICE)
        self.api.seconds[CURRENT] = 20.0
        self.wait_for(f"one {CURRENT}")
        self.token.write_text("two")
        for _ in range(400):
            self.advance(0.2)
            self.assertNotIn('peer_id="d2', self.page(""))
        self.assertIn('peer_id="e2', self.page(""))

    def run_out_of_memory(self, method: str) -> list[MemoryError]:
        """Let the next call of the pipeline fail. Return what is still to be raised."""
        pipeline, failures = (
            self.exporter.accounts[""].network.pipeline,
            [MemoryError()],
        )
        really = getattr(pipeline, method)

        async def once(**words: bool) -> None:
            if failures:
                raise failures.pop()
            await really(**words)

        self.patch(pipeline, method, once)
        return failures

    def test_no_memory(self) -> None:
        """Peers that were held, and need too much memory then, are read again."""
        self.begin(seconds=0, one=SERVICE)
        failures = self.run_out_of_memory("release_peers")
        self.advance(10)
        self.assertEqual(([], {"d2"}), (failures, self.accounts()))
        self.assertTrue(self.peers())
        self.assertEqual([], [x for x in self.book.lines() if "internal" in x])

    def test_no_memory_for_the_owner(self) -> None:
        """Another account's peers are held until the former records are removed."""
        self.begin(one=VIEWER, two=OTHER_VIEWER)
        failures = self.run_out_of_memory("replace_user")
        self.token.write_text("two")
        for _ in range(60):
            self.advance(1)
            lines = self.page("").splitlines()
            peers = [line for line in lines if line.startswith("netbird_api_peer_")]
            for ids in ("d2", "e2"):
                self.assertIn(sum(f'"{ids}' in one for one in peers), {0, len(peers)})
        self.assertEqual(([], {"e2"}), (failures, self.accounts()))
        self.assertEqual([], [x for x in self.book.lines() if "internal" in x])

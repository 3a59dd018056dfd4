"""A page that is made from the previous one equals the page of a new process."""

import json
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.collector import MetricFilter
from api_exporter.exposition import rendering
from api_exporter.exposition.rendering import EMPTY_PAGE, RenderedPage, render_page
from api_exporter.exposition.text import UnchangedFamily
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import PERSONAL
from api_exporter.subjects import networks
from api_exporter.subjects.table import COLLECTORS
from tests import tries
from tests.bodies import EVERYTHING, body, inventory
from tests.collectors.samples import page, parsed, rendered
from tests.inventories import inventory_of

TIMES = st.sampled_from(("0001-01-01T00:00:00Z", "2026-05-22T12:00:00.5Z"))
WORDS = st.sampled_from(("", "a", 'b"\\\n'))
FLAGS = st.booleans()
PEER = st.fixed_dictionaries(
    {
        "serial_number": st.just("s"),
        "login_expiration_enabled": st.just(True),
        "user_id": st.just("u"),
        "last_login": st.just("2026-05-22T12:00:00Z"),
    },
    optional={
        "name": WORDS,
        "hostname": WORDS,
        "os": WORDS,
        "connected": FLAGS,
        "last_seen": TIMES,
    },
)
USER = st.fixed_dictionaries(
    {"email": st.just("e")}, optional={"is_current": FLAGS, "last_login": TIMES}
)


LIFETIMES = st.sampled_from((0, 60, 3600))


def account(lifetime: int, id_: str = "a") -> object:
    """Return an account, with logins that expire after this many seconds."""
    on = {"peer_login_expiration_enabled": True, "peer_login_expiration": lifetime}
    return {"id": id_, "settings": on}


def some(record: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[object]:
    """Return a list of records, in any order, with few different ids."""
    ids = st.integers(0, 12).map(lambda number: f"id{number}")
    return st.dictionaries(ids, record, max_size=12).map(
        lambda found: [{"id": id_, **fields} for id_, fields in found.items()]
    )


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "peers": st.none() | some(PEER),
        "users": st.none() | some(USER),
        "accounts": st.none() | LIFETIMES.map(account).map(lambda a: [a]),
        "groups": st.none() | st.just("groups"),
    },
)
"""For each resource: withdrawn, another body, or the name of a body in a file."""

PATTERNS = st.lists(
    st.sampled_from(("netbird_api_peer_*", "*_info", "*_timestamp*", "*connected*")),
    max_size=2,
).map(tuple)
CHOICES = st.builds(
    MetricFilter,
    deny=PATTERNS,
    detail=st.sampled_from((None, frozenset(), frozenset({"All", "id1"}))),
)
PEOPLE = st.sets(st.sampled_from(PERSONAL)).map(frozenset)

ROUNDS = st.lists(st.tuples(CHANGES, CHOICES, PEOPLE), max_size=6)


def read(inventory: Inventory, resource: str, told: object) -> Inventory:
    """Return the inventory after a body, or after a withdrawal."""
    if told is None:
        return inventory.replacing(resource, None)
    [found] = [r for r in EVERYTHING if r.name == resource]
    raw = body(told) if isinstance(told, str) else json.dumps(told).encode()
    before = inventory.records.get(resource) or ()
    return inventory.replacing(
        resource, found.decoder.decode(raw, DecodeContext(before)).records
    )


def records(inventory: Inventory) -> set[int]:
    """Return the identities of all known records."""
    values = (inventory.records.get(r.name) or () for r in EVERYTHING)
    return {id(record) for found in values for record in found}


def held(page: RenderedPage) -> set[int]:
    """Return the identities of the records that a page holds."""
    return {id(r) for family in page.families.values() for r in family.records}


class KeptTests(SynchronousTestCase):
    @settings(deadline=None, max_examples=tries(60))
    @given(rounds=ROUNDS)
    def test_any_rounds(
        self, rounds: list[tuple[dict[str, object], MetricFilter, frozenset[str]]]
    ) -> None:
        """The text equals that of a new process, after any changes.

        Peers, resources, families and labels come and go. The compressed form has the
        same text. A page holds no record that is not known any more.
        """
        known = inventory_of()
        pages: dict[str, RenderedPage] = {}
        for changes, choice, personal in rounds:
            for resource, told in changes.items():
                known = read(known, resource, told)
            switches = personal, choice.detail
            if switches != (known.personal, known.detail):
                known = replace(known, personal=personal, detail=choice.detail)
                pages = {}  # a changed setting starts the account again
            there = records(known)
            for collector in COLLECTORS:
                chosen = choice.apply(collector)
                before = pages.pop(collector.name, EMPTY_PAGE)
                if chosen is None:
                    continue
                families = chosen.make_families(known, before.inputs_keys)
                after = render_page(families, before)
                pages[collector.name] = after
                text = rendered(chosen.make_families(known)).encode()
                self.assertEqual(text, b"".join(p.text for p in after.page))
                packed = b"".join(p.deflated for p in after.page)
                inflate = zlib.decompressobj(-zlib.MAX_WBITS)
                self.assertEqual(text, inflate.decompress(packed))
                lines = [x for x in text.split(b"\n") if x and not x.startswith(b"#")]
                self.assertEqual(len(lines), sum(p.series for p in after.page))
                self.assertLessEqual(held(after), there)


class EditionTests(SynchronousTestCase):
    """A family is copied from the previous page while its inputs_key is the same.

    So an inputs_key must depend on all resources that the family needs.
    """

    def setUp(self) -> None:
        self.begin(frozenset())

    def begin(self, detail: frozenset[str]) -> None:
        """Render all pages, with series of their own for peers of some groups."""
        detailed = MetricFilter(detail=detail or None)
        self.collectors = [*filter(None, map(detailed.apply, COLLECTORS))]
        self.known = replace(inventory(personal=True), detail=detailed.detail)
        self.pages = dict.fromkeys((c.name for c in COLLECTORS), EMPTY_PAGE)
        self.check()

    def check(self) -> None:
        """Compare all pages, each made of the previous one, with new ones."""
        for collector in self.collectors:
            before = self.pages[collector.name]
            families = collector.make_families(self.known, before.inputs_keys)
            after = self.pages[collector.name] = render_page(families, before)
            new_text = rendered(collector.make_families(self.known))
            self.assertEqual(new_text, b"".join(p.text for p in after.page).decode())

    def cycle(self, resource: str) -> None:
        """Remove half of the records, all of them, the resource, and restore it."""
        told = self.known.records[resource]
        for some in (told[::2], (), None, told):
            self.known = self.known.replacing(resource, some)
            self.check()

    def test_each_resource(self) -> None:
        for resource in EVERYTHING:
            whole = self.known
            self.cycle(resource.name)
            self.known = whole  # restores records that were removed with it
            self.check()

    def test_detail(self) -> None:
        """Groups choose the peers with series of their own."""
        names = [group.name for group in self.known.groups or ()]
        for name in names:
            self.begin(frozenset({name}))
            self.cycle("groups")
            self.cycle("peers")

    def test_pieces(self) -> None:
        """Families may be cut into pieces."""
        for size in (1, 700, 5000):
            self.patch(rendering, "PIECE_BYTES", size)
            self.cycle("groups")
            self.cycle("peers")

    def test_time(self) -> None:
        """Windows and days end without a reading."""
        for seconds in (3600.0, 86400.0, 40 * 86400.0):
            self.known = replace(self.known, now=self.known.now + seconds)
            self.check()

    def test_needs(self) -> None:
        """Families that do not depend on a change are not made again."""
        self.known = self.known.replacing("peers", self.known.peers)
        [collector] = [c for c in COLLECTORS if c.name == "networks"]
        families = collector.make_families(
            self.known, self.pages["networks"].inputs_keys
        )
        fresh = [f.metric for f in families if not isinstance(f, UnchangedFamily)]
        self.assertEqual(
            [row.metric for row in networks.FAMILIES if "peers" in row.needs], fresh
        )


Answer = dict[str, object]

NETWORKS = [{"id": id_, "name": id_, "resources": ["r"]} for id_ in ("n1", "n2")]
ACCOUNTS = [account(60, "a1"), account(3600, "a2")]
CURRENT_USERS = [{"id": id_, "is_current": True} for id_ in ("u1", "u2")]
EXPIRING = {"id": "p", "user_id": "u1", "login_expiration_enabled": True}
EXPIRING |= {"last_login": "2026-01-01T00:00:00Z"}


class HistoryTests(SynchronousTestCase):
    """Equal responses make equal pages, with any earlier responses."""

    def after(self, *answers: Answer) -> Inventory:
        """Return the inventory after these responses, one after the other."""
        known = inventory_of()
        for answer in answers:
            for name, told in answer.items():
                known = read(known, name, told)
        return known

    def test_pages(self) -> None:
        """The greater id of two networks counts, and the first of two accounts."""
        networks_: Answer = {"network_resources": [{"id": "r"}], "networks": NETWORKS}
        turned: Answer = {**networks_, "networks": NETWORKS[::-1]}
        logins: Answer = {"peers": [EXPIRING], "accounts": ACCOUNTS}
        for answer, name, last in (
            (networks_, "networks", NETWORKS[1]),
            (logins, "accounts", ACCOUNTS[1]),
        ):
            once, later = self.after(answer), self.after({name: [last]}, answer)
            pages = [dict(parsed(page(k, COLLECTORS))) for k in (once, later)]
            self.assertEqual(*pages)
        for one in (networks_, turned):
            self.assertIn('network_id="n2"', page(self.after(one)))

    def test_current_user(self) -> None:
        """Tokens of the same one of two current users are requested, in any order."""
        answer: Answer = {"users": CURRENT_USERS, "access_tokens": [{"id": "t"}]}
        for before in ([], CURRENT_USERS[1:], CURRENT_USERS[::-1]):
            earlier: Answer = {"users": before}
            self.assertEqual("u1", self.after(earlier, answer).current_user_id)

"""`/lookup`, `/lookup.json` and `/lookup.csv`: the peer of an address or a DNS name.

They are optional: LOOKUP imports this module.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from twisted.web.resource import IResource
from twisted.web.server import Request

from api_exporter.exposition.pages import Payload
from api_exporter.ports import Compute
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import ErrorPage, ReadOnlyPage, error_line
from api_exporter.serving.sender import send
from api_exporter.web.context import SiteContext
from api_exporter.web.discovery.page import unknown
from api_exporter.web.lookup_table import (
    TABLE_READS,
    Key,
    PeerRow,
    Table,
    address_key,
    make_table,
    name_key,
)
from api_exporter.web.tree import ByAccount

MAX_QUERIES = 100
"""The maximum number of addresses and names in a request."""

MAX_DNS_LENGTH = 253
"""The maximum number of characters of a DNS name."""

_USAGE = "request /lookup?address=100.64.0.7 or /lookup?name=laptop"


class Found(Struct, frozen=True):
    """The peers of one address or name."""

    query: str
    peers: Sequence[PeerRow]


class NewestTable:
    """The table of an account, which follows its publications.

    Attributes:
        table: None while it is unknown.
    """

    def __init__(self, network: AccountNetwork, compute: Compute) -> None:
        self.network = network
        self._compute = compute
        self._edition: object = None
        self.table: Table | None = None

    async def update(self, _resource: str) -> None:
        """Make the table again if a list has changed from which it is made."""
        inventory = self.network.inventory
        edition = inventory.edition(TABLE_READS)
        if edition == self._edition:
            return
        made, self._edition = None, None
        try:
            if inventory.peers is not None and inventory.groups is not None:
                made = await self._compute(make_table, inventory)
                self._edition = edition
        finally:
            self.table = made


class TablePage(ReadOnlyPage):
    """A page of an account's table; 503 while the peers or groups are unknown."""

    parameters: frozenset[bytes] = frozenset()

    def __init__(self, newest: NewestTable, context: SiteContext) -> None:
        super().__init__()
        self._newest = newest
        self._now = context.now

    def answer(self, request: Request, table: Table) -> bytes | int:
        raise NotImplementedError

    def render_GET(self, request: Request) -> bytes | int:
        network, table = self._newest.network, self._newest.table
        reason = unknown(network.inventory, network.telemetry.freshness, self._now())
        if reason or table is None:
            reason = reason or "the table is being made: retry in a second"
            return error_line(request, 503, reason)
        parameters = {b"account"} if network.account else set()
        if others := set(request.args) - parameters - self.parameters:
            other = min(others)[:60].decode("utf-8", "replace")
            return error_line(request, 400, f"{other!a} is not allowed: {_USAGE}")
        return self.answer(request, table)


class Lookup(TablePage):
    """The peers of some addresses and names."""

    parameters = frozenset({b"address", b"name"})

    def answer(self, request: Request, table: Table) -> bytes:
        try:
            queries = list(parse_queries(request.args))
        except ValueError as error:
            return error_line(request, 400, str(error))
        results = [Found(query, table.find(key)) for query, key in queries]
        if not any(found.peers for found in results):
            more = f" or {len(results) - 1} others" if len(results) > 1 else ""
            line = f"No peer has the address or name {results[0].query!a}{more}."
            return error_line(request, 404, line)
        request.setHeader(b"Content-Type", b"application/json")
        return msgspec.json.encode({"results": results}) + b"\n"


_MEDIA_TYPES = {
    "json": b"application/json",
    "csv": b"text/csv; charset=utf-8; header=present",
}


class WholeTable(TablePage):
    """All rows in one form: `json` or `csv`. All responses share their bytes."""

    def __init__(self, newest: NewestTable, context: SiteContext, form: str) -> None:
        super().__init__(newest, context)
        self._form = form

    def answer(self, request: Request, table: Table) -> bytes | int:
        payload: Payload | None = getattr(table, self._form)
        if payload is None:
            return error_line(request, 503, "the table is too long: see the settings")
        request.setHeader(b"Content-Type", _MEDIA_TYPES[self._form])
        return send(request, payload.slices, payload.length)


def parse_queries(
    arguments: Mapping[bytes, Sequence[bytes]],
) -> Iterator[tuple[str, Key]]:
    """Yield each address and name with its key; raise ValueError with a line."""
    addresses, names = (
        [value.decode("utf-8", "replace") for value in arguments.get(name, ())]
        for name in (b"address", b"name")
    )
    if not 0 < len(addresses) + len(names) <= MAX_QUERIES:
        raise ValueError(
            f"{_USAGE}; {MAX_QUERIES} addresses and names are allowed at once"
        )
    for text in addresses:
        try:
            yield text, address_key(text)
        except ValueError:
            raise ValueError(
                f"address: {text[:60]!a} is no IPv4 or IPv6 address; {_USAGE}"
            ) from None
    for text in names:
        if not 0 < len(text) <= MAX_DNS_LENGTH:
            raise ValueError(
                f"name: {text[:60]!a} is no DNS name, which has 1 to"
                f" {MAX_DNS_LENGTH} characters"
            )
        yield text, name_key(text)


class LookupTables:
    """The newest table of each account."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._tables: dict[str, NewestTable] = {}

    def of(self, network: AccountNetwork) -> NewestTable:
        """Return a network's table, which follows it from the first call on."""
        newest = self._tables.get(network.account)
        if newest is None or newest.network is not network:
            newest = NewestTable(network, self._compute)
            network.followers.append(newest.update)
            self._tables[network.account] = newest
        return newest

    def keep(self, names: Container[str]) -> None:
        """Forget the tables of other accounts; each holds a whole network."""
        self._tables = {n: table for n, table in self._tables.items() if n in names}


def lookup_pages(
    networks: Mapping[str, AccountNetwork],
    context: SiteContext,
    newest: LookupTables,
    *,
    has_names: bool,
) -> Mapping[str, IResource]:
    """Return the pages by path.

    Args:
        has_names: whether a request must name an account.
    """
    tables = {name: newest.of(network) for name, network in networks.items()}
    newest.keep(networks)
    pages: dict[str, Callable[[NewestTable], IResource]] = {
        "lookup": lambda table: Lookup(table, context),
        "lookup.json": lambda table: WholeTable(table, context, "json"),
        "lookup.csv": lambda table: WholeTable(table, context, "csv"),
    }
    if not has_names:
        return {path: make(tables[""]) for path, make in pages.items()}
    return {
        path: ByAccount(
            {name.encode(): make(table) for name, table in tables.items()},
            ErrorPage(400, f"account is missing: request /{path}?account=NAME"),
        )
        for path, make in pages.items()
    }

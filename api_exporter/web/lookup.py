"""`/lookup`, `/lookup.json` and `/lookup.csv`: the peer of an address or a DNS name.

They are optional: LOOKUP imports this module.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from twisted.web.server import Request

from api_exporter.exposition.pages import Payload
from api_exporter.ports import Compute
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import error_line
from api_exporter.serving.sender import send
from api_exporter.web.account_page import AccountPage
from api_exporter.web.discovery import unknown
from api_exporter.web.peer_table import (
    MAX_TABLE_BYTES,
    TABLE_READS,
    Key,
    Table,
    address_key,
    lookup_row,
    make_table,
    name_key,
)

MAX_QUERIES = 100
"""The maximum number of addresses and names in a request."""

MAX_DNS_LENGTH = 253

_USAGE = "request /lookup?address=100.64.0.7 or /lookup?name=laptop"


@dataclass(eq=False)
class NewestTable:
    """A follower of a network, which makes the table after each publication."""

    network: AccountNetwork
    compute: Compute
    inputs_key: object = None
    table: Table | None = None

    async def __call__(self, _resource: str) -> None:
        """Make the table again if a list has changed from which it is made."""
        inventory = self.network.inventory
        inputs_key = inventory.inputs_key(TABLE_READS)
        if inputs_key == self.inputs_key:
            return
        made, self.inputs_key = None, None
        try:
            if inventory.peers is not None and inventory.groups is not None:
                made = await self.compute(make_table, inventory)
                self.inputs_key = inputs_key
        finally:
            self.table = made


class TablePage(AccountPage):
    """A page of an account's table; 503 while the peers or groups are unknown."""

    parameters: frozenset[bytes] = frozenset()

    def answer(self, request: Request, table: Table) -> bytes | int:
        raise NotImplementedError

    def one(self, request: Request, network: AccountNetwork) -> bytes | int:
        followers = network.followers
        table = next(one.table for one in followers if isinstance(one, NewestTable))
        reason = unknown(network, self.now())
        if reason or table is None:
            reason = reason or "the table is being made: retry in a second"
            return error_line(request, 503, reason)
        if others := set(request.args) - {b"account"} - self.parameters:
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
        results = [
            {"query": query, "peers": [*map(lookup_row, table.find(key))]}
            for query, key in queries
        ]
        if not any(found["peers"] for found in results):
            more = f" or {len(results) - 1} others" if len(results) > 1 else ""
            line = f"No peer has the address or name {results[0]['query']!a}{more}."
            return error_line(request, 404, line)
        return msgspec.json.encode({"results": results}) + b"\n"


class WholeTable(TablePage):
    """All rows in one form. All responses share their bytes."""

    form = "json"

    def answer(self, request: Request, table: Table) -> bytes | int:
        payload: Payload | None = getattr(table, self.form)
        if payload is None:
            limit = MAX_TABLE_BYTES >> 20
            line = (
                f"the table has more than {limit} MiB: name fewer peers in PEER_DETAIL"
            )
            return error_line(request, 503, line)
        return send(request, payload.slices, payload.length)


class CsvTable(WholeTable):
    """All rows as CSV."""

    form, media_type = "csv", b"text/csv; charset=utf-8; header=present"


LOOKUP_PAGES = {"lookup": Lookup, "lookup.json": WholeTable, "lookup.csv": CsvTable}


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

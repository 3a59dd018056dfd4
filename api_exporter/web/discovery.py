"""`/sd` and `/sd/accounts`: targets for Prometheus' HTTP service discovery.

An unknown list is never sent as an empty one: Prometheus would drop its targets, and
with them their `up`. After a 503 Prometheus keeps the targets that it has.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv6Address
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.logger import Logger
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.netbird.resource_state import ResourceState
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import Answer, ReadOnlyPage, error_line, visible_accounts
from api_exporter.web.account_page import AccountPage, Networks
from api_exporter.web.context import SiteContext
from api_exporter.web.peer_table import (
    ADDRESS_COLUMNS,
    MAX_RESPONSE_BYTES,
    MAX_TARGETS,
    Query,
    ResponseTooLong,
    has_too_many_targets,
    target_list,
)

_log = Logger()

MAX_PORTS = 16
"""The maximum number of ports in a query: each multiplies the targets."""

FULL = "too many responses are pending: retry later"

_TOO_LONG = (
    f"the response has more than {MAX_RESPONSE_BYTES >> 20} MiB or {MAX_TARGETS:,}"
    " targets: request groups, or fewer ports"
)


class Discovery(AccountPage):
    """The peers as targets, computed by `target_list` for a `Query`."""

    usage = "&port=9100"

    def __init__(self, networks: Networks, context: SiteContext) -> None:
        super().__init__(networks, context)
        self._locks = WeakKeyDictionary[AccountNetwork, DeferredLock]()

    def one(self, request: Request, network: AccountNetwork) -> bytes | int:
        try:
            parsed = parse_query(request.args, ("account",) if network.account else ())
        except ValueError as error:
            return error_line(request, 400, str(error))
        if reason := unknown(network, self.now()):
            return error_line(request, 503, reason)
        if has_too_many_targets(network.inventory, parsed):
            return error_line(request, 400, _TOO_LONG)
        work = Deferred.fromCoroutine(self._send(request, network, parsed))
        request.notifyFinish().addErrback(lambda _: work.cancel())
        return NOT_DONE_YET

    async def _send(
        self, request: Request, network: AccountNetwork, parsed: Query
    ) -> None:
        known, lists = network.inventory, self.context.pending_lists
        # One list of each account waits for the others, so accounts take turns.
        lock = self._locks.setdefault(network, DeferredLock())
        try:
            async with lock, lists.lock:
                body = await self.context.compute(
                    target_list, known, parsed, network.account
                )
                if not await lists.send(request, body.slices, body.length):
                    _end(request, error_line(request, 503, FULL))
        except CancelledError:  # the connection is closed
            return
        except ResponseTooLong:
            _end(request, error_line(request, 400, _TOO_LONG))
        except Exception:  # noqa: BLE001 - a bug
            _log.failure("internal error in service discovery")
            _end(
                request, error_line(request, 500, "the exporter has a bug: see its log")
            )


def unknown(network: AccountNetwork, now: float) -> str:
    """Return why the peers or groups are unknown, in a line; "" if they are known."""
    for name in ("peers", "groups"):
        if name not in network.inventory.records:
            state = network.states[name]
            return f"the {name} are unknown: {_reason(state, now)}"
    return ""


def _reason(state: ResourceState, now: float) -> str:
    since = ""
    if state.last_success is not None:
        since = f"last refresh {now - state.last_success:.0f} s ago; "
    if state.error is not None:
        return since + " ".join(str(state.error).split())
    if state.restricted:
        return "they are withheld: the token's user may not read all of them"
    if state.supported is False:
        return f"{since}the NetBird API does not offer them to this token"
    return f"{since}the next refresh has not finished"


def _end(request: Request, body: bytes) -> None:
    request.write(body)
    request.finish()


_PARAMETERS = ("port", "group", "address")

_PORT = re.compile(r"[1-9][0-9]{0,4}")

Arguments = Mapping[bytes, Sequence[bytes]]


def parse_query(arguments: Arguments, others: Sequence[str] = ()) -> Query:
    """Return the checked query; raise ValueError with a line that says what is valid.

    Args:
        others: names of further parameters, which are ignored.
    """
    for name in arguments:
        if _text(name) not in (*_PARAMETERS, *others):
            allowed = ", ".join((*others, *_PARAMETERS))
            raise ValueError(
                f"{_text(name)!r} is not allowed: the parameters are {allowed}"
            )
    ports = {_port(_text(value)) for value in arguments.get(b"port", ())}
    if not ports:
        given = [(name, value) for name in arguments for value in arguments[name]]
        line = f"/sd?{urlencode([*given, (b'port', b'9100')])}"
        raise ValueError(
            f"port is missing: request {line} or another port of the targets"
        )
    if len(ports) > MAX_PORTS:
        raise ValueError(
            f"{len(ports)} ports are not allowed: request at most {MAX_PORTS} at once"
        )
    groups = [_text(value) for value in arguments.get(b"group", ())]
    if "" in groups:
        raise ValueError(
            "group: '' is not allowed: it must be the id or name of a group"
        )
    addresses = [_text(value) for value in arguments.get(b"address", (b"ip",))]
    if len(addresses) > 1:
        raise ValueError(
            "address: more than one is not allowed: only port and group may repeat"
        )
    if addresses[0] not in ADDRESS_COLUMNS:
        allowed = ", ".join(ADDRESS_COLUMNS)
        raise ValueError(
            f"address: {addresses[0]!r} is not allowed: it must be {allowed}"
        )
    return Query(tuple(sorted(ports)), frozenset(groups), addresses[0])


def _port(text: str) -> int:
    if _PORT.fullmatch(text) is None or int(text) > 65535:
        raise ValueError(
            f"port: {text!r} is not allowed: it must be a whole number from 1 to 65535"
        )
    return int(text)


def _text(raw: bytes) -> str:
    """Decode a value; invalid UTF-8 is replaced, as in the records."""
    return raw.decode("utf-8", "replace")


_ADDRESS = re.compile(
    r"(?:[A-Za-z0-9_.-]{1,253}|\[(?P<ip>[0-9A-Fa-f:.]{2,45})\])(?::(?P<port>\d{1,5}))?"
)


class AccountTargets(ReadOnlyPage):
    """`/sd/accounts`: one target per account, each this exporter with `?account=NAME`.

    Facts: docs/http_sd.md of Prometheus. A label that begins with `__param_` becomes a
    parameter of the scrape.
    """

    media_type = b"application/json"

    def __init__(self, accounts: Iterable[str], *, metrics_path: str) -> None:
        super().__init__()
        self._accounts = accounts
        self._metrics_path = metrics_path

    def page(self, request: Request) -> Answer:
        """Return a JSON list; the address is the query's, else the Host header's."""
        hosts = request.requestHeaders.getRawHeaders(b"host", [])
        addresses = request.args.get(b"address") or hosts
        address = b",".join(addresses).decode("ascii", "replace")
        if set(request.args) - {b"address"} or not _is_address(address):
            return error_line(
                request,
                400,
                "Request /sd/accounts or /sd/accounts?address=HOST:PORT, where the"
                " address is that of this exporter.",
            )
        visible, extra_labels = visible_accounts(request), {}
        if self._metrics_path != "/metrics":
            extra_labels["__metrics_path__"] = self._metrics_path
        if request.isSecure():
            extra_labels["__scheme__"] = "https"
        targets = [
            {
                "targets": [address],
                "labels": {"__param_account": name, "account": name, **extra_labels},
            }
            for name in self._accounts
            if name in visible
        ]
        return json.dumps(targets) + "\n"


def _is_address(address: str) -> bool:
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match["port"] or 80) < 65536:
        return False
    try:
        IPv6Address(match["ip"] or "::")
    except ValueError:
        return False
    return True

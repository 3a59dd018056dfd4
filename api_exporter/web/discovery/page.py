"""`/sd`: the targets, or 503 if the peers or groups are unknown.

An unknown list is never sent as an empty one: Prometheus would drop its targets, and
with them their `up`. After a 503 Prometheus keeps the targets that it has.
"""

from collections.abc import Mapping

from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.logger import Logger
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.netbird.inventory import Inventory
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import ReadOnlyPage, error_line
from api_exporter.telemetry.freshness import Freshness
from api_exporter.web.context import SiteContext
from api_exporter.web.discovery.query import Query, QueryError, parse_query
from api_exporter.web.discovery.targets import (
    MAX_TARGETS,
    REQUIRED,
    has_too_many_targets,
    target_list,
)
from api_exporter.web.json_list import MAX_RESPONSE_BYTES, ResponseTooLong

_log = Logger()

FULL = "too many responses are pending: retry later"

_TOO_LONG = (
    f"the response has more than {MAX_RESPONSE_BYTES >> 20} MB or {MAX_TARGETS:,}"
    " targets: request groups, or fewer ports"
)


class Discovery(ReadOnlyPage):
    """The peers as targets, computed by `target_list` for a `Query`."""

    def __init__(self, network: AccountNetwork, context: SiteContext) -> None:
        super().__init__()
        self._network = network
        self._lists = context.pending_lists
        self._lock = DeferredLock()
        self._compute = context.compute
        self._now = context.now

    def render_GET(self, request: Request) -> bytes | int:
        account = self._network.account
        try:
            parsed = parse_query(request.args, ("account",) if account else ())
        except QueryError as error:
            return error_line(request, 400, str(error))
        known = self._network.inventory
        if reason := unknown(known, self._network.telemetry.freshness, self._now()):
            return error_line(request, 503, reason)
        if has_too_many_targets(known, parsed):
            return error_line(request, 400, _TOO_LONG)
        work = Deferred.fromCoroutine(self._answer(request, known, parsed))
        request.notifyFinish().addErrback(lambda _: work.cancel())
        return NOT_DONE_YET

    async def _answer(self, request: Request, known: Inventory, parsed: Query) -> None:
        try:
            # One list of each account waits for the others, so accounts take turns.
            async with self._lock, self._lists.lock:
                body = await self._compute(
                    target_list, known, parsed, self._network.account
                )
                request.setHeader(b"Content-Type", b"application/json")
                if not await self._lists.send(request, body.slices, body.length):
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


def unknown(
    inventory: Inventory, freshness: Mapping[str, Freshness], now: float
) -> str:
    """Return why a required resource is unknown, in a line; "" if all are known."""
    for name in REQUIRED:
        if name not in inventory.records:
            return f"the {name} are unknown: {_reason(freshness[name], now)}"
    return ""


def _reason(freshness: Freshness, now: float) -> str:
    since = ""
    if freshness.last_success is not None:
        since = f"last refresh {now - freshness.last_success:.0f} s ago; "
    if freshness.error is not None:
        return since + " ".join(str(freshness.error).split())
    if freshness.supported is False:
        return f"{since}the NetBird API does not offer them to this token"
    return f"{since}the next refresh has not finished"


def _end(request: Request, body: bytes) -> None:
    request.write(body)
    request.finish()

"""Pages for programs: `/health`, `/ready`, and `/status.json` with its schema.

`/health` is about the process and its resources, `/ready` about the peers: whether
their records are reliable. A request starts no refresh.
"""

from collections.abc import Iterator
from itertools import chain

import msgspec
from twisted.web.server import Request

from api_exporter.formatting import with_noun
from api_exporter.netbird.resource_state import UNRELIABLE_INTERVALS, ResourceState
from api_exporter.netbird.resources import PEERS
from api_exporter.refresh.network import AccountNetwork
from api_exporter.report.document import Document
from api_exporter.serving.page import Answer, ReadOnlyPage
from api_exporter.subjects.groups import GroupCount
from api_exporter.upstream.advice import advice
from api_exporter.web.account_page import AccountPage


class Health(AccountPage):
    """The status is 200 whenever the process responds."""

    def one(self, _request: Request, network: AccountNetwork) -> dict[str, object]:
        telemetry = network.telemetry
        return self._process(
            upstream={"url": network.url, "reachable": telemetry.reachable},
            resources={name: _entry(known) for name, known in telemetry.states.items()},
        )

    def many(self, _request: Request) -> dict[str, object]:
        return self._process(
            accounts={
                name: {"up": network.states[PEERS].up}
                for name, network in self.networks.items()
            }
        )

    def _process(self, **more: object) -> dict[str, object]:
        return {
            "status": "ok",
            "version": self.context.build.version,
            "uptime_seconds": round(self.context.uptime(), 3),
            **more,
        }


def _entry(state: ResourceState) -> dict[str, object]:
    error = state.error
    entry: dict[str, object] = {
        "up": state.up,
        "supported": state.supported,
        "last_success_timestamp_seconds": state.last_success,
        "records": state.records if state.last_success else None,
        "last_error_reason": error.reason if error else None,
    }
    if error is not None and error.request_id:
        entry["last_error_request_id"] = error.request_id
    return entry


class Ready(AccountPage):
    """200 if the records of the peers are reliable, otherwise 503 with the reasons.

    With `?group=NAME`, all peers of that important group must be connected, too.
    """

    def one(self, request: Request, network: AccountNetwork) -> dict[str, object]:
        found = [*reasons(network.states[PEERS], self.now())]
        answer: dict[str, object] = {}
        if names := [
            raw.decode("utf-8", "replace") for raw in request.args.get(b"group", ())
        ]:
            groups = [*chain.from_iterable(_find(network, name) for name in names)]
            found += chain.from_iterable(_offline(network, name) for name in names)
            answer["groups"] = [
                {
                    "name": group.name,
                    "id": group.id,
                    "total": group.peers,
                    "connected": group.connected,
                    "offline": group.peers - group.connected,
                }
                for group in groups
            ]
        request.setResponseCode(503 if found else 200)
        return {"ready": not found, "reasons": found, **answer}

    def many(self, request: Request) -> Answer:
        """Return 200 if any account is ready, or if there is no account.

        One customer's invalid token must not take the others out of service.
        """
        if request.args.get(b"group"):
            return super().many(request)
        found = {
            name: not [*reasons(network.states[PEERS], self.now())]
            for name, network in self.networks.items()
        }
        ready = any(found.values()) or not found
        request.setResponseCode(200 if ready else 503)
        return {"ready": ready, "accounts": found}


def reasons(state: ResourceState, now: float) -> Iterator[dict[str, str]]:
    """Yield why the records of the peers are not reliable.

    The metrics of the peers stay longer: until METRICS_MAX_AGE.
    """
    if (error := state.error) is not None:
        yield {"reason": error.reason, "message": str(error), "advice": advice(error)}
    if state.restricted:
        yield {
            "reason": "restricted",
            "message": "the peers are withheld: the token's user may not read all of"
            " them",
            "advice": "Use the token of a service user with the role auditor.",
        }
        return
    if state.last_success is None:
        message = "no refresh of the peers has succeeded yet"
        yield {"reason": "never_read", "message": message}
        return
    age, interval = now - state.last_success, state.interval
    if age > UNRELIABLE_INTERVALS * interval or state.withdrawn:
        yield {
            "reason": "too_old",
            "message": f"the last refresh of the peers was {age:.0f} s ago,"
            f" the interval is {interval:g} s",
        }


def _find(network: AccountNetwork, name: str) -> list[GroupCount]:
    """Return the important groups with a name or id, which exist."""
    known = network.findings.groups or ()
    return [group for group in known if group.id and name in {group.name, group.id}]


def _offline(network: AccountNetwork, name: str) -> Iterator[dict[str, str]]:
    """Yield why not all peers of an important group are known to be connected."""
    if network.findings.groups is None:
        yield {"reason": "group_unknown", "message": f"{name!a}: not known yet"}
    elif not _find(network, name):
        message = f"{name!a}: no such group, or it is not an important one"
        yield {"reason": "group_unknown", "message": message}
    for group in _find(network, name):
        if offline := group.peers - group.connected:
            message = f"{name!a}: {offline} of {with_noun(group.peers, 'peer')} offline"
            yield {"reason": "group_offline", "message": message}


class StatusJson(AccountPage):
    """The report on the accounts that the client may see."""

    def one(self, _request: Request, network: AccountNetwork) -> bytes:
        return _encoded(self.context.document([network]))

    def many(self, request: Request) -> bytes:
        return _encoded(self.visible_document(request))


def _encoded(document: Document) -> bytes:
    return msgspec.json.encode(document) + b"\n"


class Schema(ReadOnlyPage):
    """The JSON Schema of the document."""

    media_type = b"application/schema+json"

    def page(self, _request: Request) -> bytes:
        made = msgspec.json.schema(Document)
        return msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"

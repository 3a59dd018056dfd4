"""The audit log: an event every ten minutes since the company was founded."""

from collections.abc import Iterator

from api_exporter.demo.moment import Moment
from api_exporter.demo.peers import peer_id
from api_exporter.demo.people import MACHINES_EACH, person
from api_exporter.demo.schedules import FOUNDED, MINUTE
from api_exporter.demo.wire import rfc3339

_KEPT = 10_000
"""As many of the newest as the upstream lists."""

_PERIOD = 10 * MINUTE

_ACTIVITIES = (
    ("peer.setupkey.add", "Peer added"),
    ("user.peer.login", "User logged in peer"),
    ("peer.login.expire", "Peer login expired"),
    ("user.peer.delete", "Peer deleted"),
    ("setupkey.overuse", "Setup key overused"),
    ("policy.update", "Policy updated"),
    ("user.role.update", "User role updated"),
    ("user.block", "User blocked"),
    ("personal.access.token.create", "Personal access token created"),
    ("brand.new.code", "Some activity newer than the exporter"),
)


def events(moment: Moment) -> Iterator[object]:
    """Newest first."""
    past = int((moment.at - FOUNDED) // _PERIOD)
    for number in range(past, max(past - _KEPT, 0), -1):
        yield _event(number, max(moment.machines, 1))


def _event(number: int, machines: int) -> object:
    # Squared, so that neither kinds nor targets come in turn.
    code, activity = _ACTIVITIES[number * number // 7 % len(_ACTIVITIES)]
    target = number * number // 3 % machines
    initiator = person(target // MACHINES_EACH)
    return {
        "activity": activity,
        "activity_code": code,
        "id": str(number),
        "initiator_email": initiator.email,
        "initiator_id": initiator.id,
        "initiator_name": f"{initiator.first} {initiator.last}",
        "meta": {
            "created_at": "2024-02-11 16:45:31.000000123 +0000 UTC",
            "fqdn": f"{target}.netbird.demo",
            "ip": f"100.64.{target >> 8 & 255}.{target & 255}",
            "name": f"{initiator.first}'s machine",
        },
        "target_id": peer_id(target),
        "timestamp": rfc3339(FOUNDED + number * _PERIOD, ".001002003"),
    }

"""The audit log: an event every ten minutes since the company was founded."""

from collections.abc import Iterator

from api_exporter.demo.go_json import rfc3339
from api_exporter.demo.peers import peer_id
from api_exporter.demo.people import MACHINES_EACH, person
from api_exporter.demo.resource import Moment, Record, Template
from api_exporter.demo.schedules import FOUNDED, MINUTE

_KEPT = 10_000
"""As many of the newest as the upstream lists."""

_PERIOD = 10 * MINUTE


def events(moment: Moment, template: Template) -> Iterator[Record]:
    """Newest first. The template has a record of each kind of event."""
    kinds, machines = template.records, max(moment.machines, 1)
    past = int((moment.at - FOUNDED) // _PERIOD)
    for number in range(past, max(past - _KEPT, 0), -1):
        # Squared, so that neither kinds nor targets come in turn.
        kind = kinds[number * number // 7 % len(kinds)]
        target = number * number // 3 % machines
        initiator = person(target // MACHINES_EACH)
        yield kind | {
            "id": str(number),
            "initiator_email": initiator.email,
            "initiator_id": initiator.id,
            "initiator_name": f"{initiator.first} {initiator.last}",
            "meta": kind["meta"]
            | {
                "fqdn": f"{target}.netbird.demo",
                "ip": f"100.64.{target >> 8 & 255}.{target & 255}",
                "name": f"{initiator.first}'s machine",
            },
            "target_id": peer_id(target),
            "timestamp": rfc3339(FOUNDED + number * _PERIOD, ".001002003"),
        }

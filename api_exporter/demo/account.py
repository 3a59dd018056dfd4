"""The account's address range and its setup keys, as they change."""

from collections.abc import Iterable

from api_exporter.demo.go_json import rfc3339
from api_exporter.demo.incidents import NARROW_RANGE
from api_exporter.demo.resource import Moment, Record, Template
from api_exporter.demo.schedules import DAY, FOUNDED, HOUR, MINUTE, MONDAY, WEEK


def accounts(moment: Moment, template: Template) -> Iterable[Record]:
    """Its address range is NetBird's own choice, where so many machines fit in."""
    narrow = 32 - (moment.machines + 1).bit_length()
    prefix = narrow if NARROW_RANGE.lasts(moment.at) else min(16, narrow - 2)
    [account] = template.records
    account["settings"]["network_range"] = f"100.64.0.0/{prefix}"
    return [account]


def setup_keys(moment: Moment, template: Template) -> Iterable[Record]:
    runners, unlimited, daily, *_, guests = template.records
    renewed, started = moment.latest(WEEK), moment.latest(7 * MINUTE)
    runners["expires"] = rfc3339(renewed + WEEK + DAY // 2, ".500112")
    runners["last_used"] = rfc3339(started, ".10021")
    runners["updated_at"] = rfc3339(renewed, ".500112")
    runners["used_times"] = (started - FOUNDED) // (7 * MINUTE)
    unlimited["last_used"] = rfc3339(moment.latest(5 * HOUR))
    daily["last_used"] = rfc3339(moment.latest(DAY))
    daily["used_times"] = 2 + int(moment.at - moment.latest(WEEK, MONDAY)) // DAY
    emptied = moment.latest(50 * MINUTE)
    uses = min(5, int(moment.at - emptied) // (8 * MINUTE))
    guests["last_used"] = rfc3339(emptied + uses * 8 * MINUTE)
    guests["used_times"] = uses
    guests["valid"] = uses < 5
    guests["state"] = "valid" if uses < 5 else "overused"
    return template.records

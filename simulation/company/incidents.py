"""Incidents: what goes wrong in a week of the network, and comes right: one table.

All in UTC. What is wrong at any time, such as a depot without routers, stands with
its subject; so does what has another rhythm.
"""

from collections.abc import Mapping

from msgspec import Struct

from simulation.company.schedules import DAY, HOUR, MINUTE, MONDAY, WEEK, Pattern, State


def _weekly(begin: int, length: int) -> Pattern:
    """Something that lasts so long, and begins so many seconds after Monday did."""
    return Pattern(MONDAY + begin, WEEK, (0, length))


TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SUNDAY = DAY, 2 * DAY, 3 * DAY, 4 * DAY, 6 * DAY

NARROW_RANGE = _weekly(TUESDAY + 9 * HOUR, HOUR)
"""Somebody makes the address range as narrow as it can be, and regrets it."""

CONTRACTOR = _weekly(WEDNESDAY + 8 * HOUR, 4 * HOUR)
"""A contractor works with a token that ends in three days."""

NO_TUNNEL = _weekly(WEDNESDAY + 14 * HOUR, HOUR)
"""There is no tunnel to a service of the reverse proxy."""

OWN_PROXY_DOWN = _weekly(THURSDAY + 8 * HOUR, 2 * HOUR)
"""The machine of a proxy of the company's own is moved."""

NO_CERTIFICATE = _weekly(THURSDAY + 13 * HOUR, 3 * HOUR)
"""A service of the reverse proxy cannot get a certificate: its domain has moved."""

OPEN = _weekly(FRIDAY + 9 * HOUR, 3 * HOUR)
"""Somebody opens the wiki to everybody, to try something, and forgets it."""

LINE_CUT = _weekly(SUNDAY + 2 * HOUR, 20 * MINUTE)
"""The servers' provider works on its lines: they are lost at once."""

LAB_UPDATE = _weekly(SUNDAY + 4 * HOUR, 20 * MINUTE)
"""The gateways are updated, the laboratory's first …"""

GATEWAYS_UPDATE = _weekly(SUNDAY + 4 * HOUR + 10 * MINUTE, 20 * MINUTE)
"""… and all others before these are back."""

SETTINGS_LOST = _weekly(10 * HOUR, HOUR)
"""A script puts the account's settings, and turns off what it leaves out."""

NO_VERIFICATION = _weekly(TUESDAY + 12 * HOUR, 2 * HOUR)
"""The certificate of the company's own models has expired, and is not verified."""

PROVIDER_OFF = _weekly(WEDNESDAY + 6 * HOUR, HOUR)
"""They are updated."""

GUARDRAIL_DELETED = _weekly(THURSDAY + 16 * HOUR, HOUR)
"""Somebody deletes a guardrail that a policy names."""

PROMPTS_KEPT = _weekly(FRIDAY + 14 * HOUR, 2 * HOUR)
"""Somebody wants to see prompts."""

INTERRUPTIONS: Mapping[str | None, Pattern] = {
    "line_cut": LINE_CUT,
    "lab_update": LAB_UPDATE,
    "gateways_update": GATEWAYS_UPDATE,
}
"""Those that `company.json` names."""


class InterruptedPattern(Struct, frozen=True):
    """A schedule of connections with an event that interrupts them."""

    schedule: Pattern
    event: Pattern

    def state(self, at: float) -> State:
        """Like the schedule's: what was connected is lost at the event's begin, and
        what would be at its end is back then.
        """
        start = self.event.start(at)
        end = start + self.event.changes[-1]
        connected, changed, joined = self.schedule.state(at)
        if at >= end:
            if changed > end:
                return connected, changed, max(joined, end)
            if connected:
                return True, end, end
        before, changed, joined = self.schedule.state(start - 1)
        return False, start if before else changed, joined

"""The incidents of a week: one table.

All times are in UTC. Permanent faults, such as a depot without routers, are in the
module of their resource. So are faults with another rhythm.
"""

from collections.abc import Mapping

from msgspec import Struct

from simulation.company.schedules import DAY, HOUR, MINUTE, MONDAY, WEEK, Pattern, State


def _weekly(begin: int, length: int) -> Pattern:
    """Return a weekly pattern. `begin` is in seconds after Monday 0:00."""
    return Pattern(MONDAY + begin, WEEK, (0, length))


TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SUNDAY = DAY, 2 * DAY, 3 * DAY, 4 * DAY, 6 * DAY

NARROW_RANGE = _weekly(TUESDAY + 9 * HOUR, HOUR)
"""An admin makes the address range as narrow as possible, then reverts it."""

CONTRACTOR = _weekly(WEDNESDAY + 8 * HOUR, 4 * HOUR)
"""A contractor works with a token that expires in three days."""

NO_TUNNEL = _weekly(WEDNESDAY + 14 * HOUR, HOUR)
"""A service of the reverse proxy has no tunnel."""

OWN_PROXY_DOWN = _weekly(THURSDAY + 8 * HOUR, 2 * HOUR)
"""The machine of one of the company's own proxies is moved."""

NO_CERTIFICATE = _weekly(THURSDAY + 13 * HOUR, 3 * HOUR)
"""A service of the reverse proxy gets no certificate, because its domain has moved."""

OPEN = _weekly(FRIDAY + 9 * HOUR, 3 * HOUR)
"""An admin opens the wiki to the public for a test and forgets to close it."""

LINE_CUT = _weekly(SUNDAY + 2 * HOUR, 20 * MINUTE)
"""The provider of the servers works on its lines, which all fail at once."""

LAB_UPDATE = _weekly(SUNDAY + 4 * HOUR, 20 * MINUTE)
"""The gateways are updated. The laboratory's are the first."""

GATEWAYS_UPDATE = _weekly(SUNDAY + 4 * HOUR + 10 * MINUTE, 20 * MINUTE)
"""All other gateways are updated before those of the laboratory are back."""

SETTINGS_LOST = _weekly(10 * HOUR, HOUR)
"""A script replaces the account's settings and turns off those it omits."""

NO_VERIFICATION = _weekly(TUESDAY + 12 * HOUR, 2 * HOUR)
"""The certificate of the company's own models has expired and is not verified."""

PROVIDER_OFF = _weekly(WEDNESDAY + 6 * HOUR, HOUR)
"""The models are updated."""

GUARDRAIL_DELETED = _weekly(THURSDAY + 16 * HOUR, HOUR)
"""An admin deletes a guardrail that a policy names."""

PROMPTS_KEPT = _weekly(FRIDAY + 14 * HOUR, 2 * HOUR)
"""An admin collects prompts."""

INTERRUPTIONS: Mapping[str | None, Pattern] = {
    "line_cut": LINE_CUT,
    "lab_update": LAB_UPDATE,
    "gateways_update": GATEWAYS_UPDATE,
}
"""The incidents that `company.json` names."""


class InterruptedPattern(Struct, frozen=True):
    """A schedule of connections and an incident that interrupts it."""

    schedule: Pattern
    event: Pattern

    def state(self, at: float) -> State:
        """Return the schedule's state, or disconnected during the incident. A machine
        that would be connected at the incident's end connects then.
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

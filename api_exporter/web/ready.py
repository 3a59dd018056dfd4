"""`/ready`: whether the peers are fresh, as JSON, and if not, why not."""

import json
from collections.abc import Callable

from twisted.web.server import Request

from api_exporter.advice import advice
from api_exporter.resources import UP
from api_exporter.standing import Standing
from api_exporter.telemetry import Telemetry
from api_exporter.web.page import Text

READY_PERIODS = 2
"""Periods after which peers are too old to be relied on. One refresh may take longer
than usual without a probe noticing; a second one that does not come is trouble."""

Reason = dict[str, str]


def reasons(standing: Standing, now: float) -> list[Reason]:
    """Why the peers are not fresh; none while their newest refresh is good and recent.

    Metrics stay for longer than that: they are withdrawn after METRICS_MAX_AGE only.
    """
    found = []
    error = standing.error
    if error is not None:
        found.append(
            {
                "reason": error.reason,
                "message": str(error),
                "advice": advice(error),
            }
        )
    if standing.last_success is None:
        found.append({"reason": "never_read", "message": "the peers were never read"})
    elif (age := now - standing.last_success) > READY_PERIODS * standing.period:
        found.append(
            {
                "reason": "too_old",
                "message": f"the peers were last read {age:.0f} s ago,"
                f" which should be every {standing.period:g} s",
            }
        )
    return found


class Ready(Text):
    """200 while the peers are fresh, otherwise 503. It never asks the upstream.

    Args:
        now: seconds since the epoch.
    """

    media_type = b"application/json"

    def __init__(self, *, telemetry: Telemetry, now: Callable[[], float]) -> None:
        super().__init__()
        self._telemetry = telemetry
        self._now = now

    def render_GET(self, request: Request) -> bytes:
        """What the reasons come to is the status."""
        request.setResponseCode(503 if self._reasons() else 200)
        return super().render_GET(request)

    def text(self) -> str:
        """One JSON object."""
        found = self._reasons()
        return json.dumps({"ready": not found, "reasons": found}, indent=2) + "\n"

    def _reasons(self) -> list[Reason]:
        return reasons(self._telemetry.standings[UP], self._now())

"""`thresholds.json`: the numbers, severities and groups of alerts and of findings."""

from functools import cache
from pkgutil import get_data
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

Whole = Annotated[int, Meta(gt=0)]
Share = Annotated[float, Meta(gt=0, lt=1)]
Severity = Literal["critical", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
"""The worst first."""

HOUR = 3600.0
DAY = 24 * HOUR


class Groups(Struct, frozen=True, forbid_unknown_fields=True):
    """Names of groups, by why they matter."""

    important: list[str]
    routers: list[str]


class Thresholds(Struct, frozen=True, forbid_unknown_fields=True):
    """What `thresholds.json` holds.

    Attributes:
        runbooks: the address of the page whose sections are the alerts'.
        severities: of all alerts, in their order.
    """

    runbooks: Annotated[str, Meta(pattern=r"^https?://\S+$")]
    groups: Groups
    hours: dict[str, Whole]
    days: dict[str, Whole]
    shares: dict[str, Share]
    peers: dict[str, Whole]
    severities: dict[str, Severity]

    def runbook(self, alert: str) -> str:
        """The address of an alert's section."""
        return f"{self.runbooks}#{alert.lower()}"


def read(text: bytes) -> Thresholds:
    """Raises ValidationError or DecodeError for what cannot be meant."""
    return msgspec.json.decode(text, type=Thresholds)


@cache
def shipped() -> Thresholds:
    """Those that came with the program."""
    return read(get_data("api_exporter", "thresholds.json") or b"")

"""The lists of one account of the simulated NetBird API, as they were at each time."""

from msgspec import Struct

from api_exporter.attention.finding import Finder
from api_exporter.netbird.bodies import DecodeContext, Decoded
from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import RESOURCE_BY_NAME
from simulation.account import Account


class Version(Struct, frozen=True, eq=False):
    """The records of a list from a time on; None if they cannot be decoded."""

    at: float
    records: tuple[object, ...] | None


Versions = tuple[Version, ...]
"""A version of each list that a finder reads, in their order."""


class Lists:
    """The lists of one account, now and before.

    Attributes:
        count: the number of their changes.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._seen: dict[str, int] = {}
        self._last: dict[str, Decoded] = {}
        self.count = 0
        self.versions: dict[str, list[Version]] = {}

    def follow(self, seconds: float) -> None:
        """Note the changes since the last call."""
        if self._account.changes == self._seen:
            return
        for name, count in self._account.changes.items():
            if count != self._seen.get(name):
                self._seen[name] = count
                versions = self.versions.setdefault(name, [])
                records = self._decoded(name)
                if not versions or versions[-1].records != records:
                    self.count += 1
                    versions.append(Version(seconds, records))

    def _decoded(self, name: str) -> tuple[object, ...] | None:
        decoder, context = RESOURCE_BY_NAME[name].decoder, DecodeContext()
        if last := self._last.get(name):
            context = DecodeContext(last.records, last.recognized)
        try:
            decoded = decoder.decode(self._account.listed(name), context)
        except UpstreamError:
            return None
        self._last[name] = decoded
        return decoded.records

    def at(self, finder: Finder, seconds: float) -> Versions | None:
        """Return what a finder reads as it was at a time; None if it is forgotten."""
        found = [latest(self.versions[name], seconds) for name in finder.reads]
        known = tuple(version for version in found if version is not None)
        return known if len(known) == len(found) else None

    def changes(self, finder: Finder, since: float) -> list[tuple[float, str]]:
        """Return the changes after a time of what a finder reads."""
        return sorted(
            (version.at, name)
            for name in finder.reads
            for version in self.versions[name]
            if version.at > since
        )

    def forget_before(self, seconds: float) -> None:
        for name, versions in self.versions.items():
            last = latest(versions, seconds)
            self.versions[name] = [v for v in versions if v is last or v.at > seconds]


def latest(versions: list[Version], seconds: float) -> Version | None:
    """Return the version of a list at a time; None if it is forgotten."""
    return next((v for v in reversed(versions) if v.at <= seconds), None)

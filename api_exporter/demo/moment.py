"""The network at one instant, as far as its parts need to know of each other."""

from collections.abc import Mapping

from msgspec import Struct

from api_exporter.demo.groups import Group


class Moment(Struct, frozen=True, kw_only=True):
    """An instant, and what depends on the fleet then.

    Attributes:
        at: seconds since the epoch.
        machines: how many the network was asked to have.
        members: of each group, by its id, how many it has at that instant.
    """

    at: float
    machines: int
    members: Mapping[str, int]

    def latest(self, period: int, phase: int = 0) -> int:
        """When something that happens every `period` seconds last happened."""
        return int((self.at - phase) // period) * period + phase

    def in_short(self, group: Group) -> dict[str, object]:
        """A group as it stands inside of other records."""
        return {
            "id": group.id,
            "name": group.name,
            "peers_count": self.members[group.id],
            "resources_count": len(group.resources),
        }

    def in_rule(self, group: Group) -> dict[str, object]:
        """Inside of a policy's rules the upstream does not count resources."""
        return {**self.in_short(group), "resources_count": 0}

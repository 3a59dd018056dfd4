"""The lifetime of something that expires, and when its expiry is near."""

from msgspec import Struct

SOON = 3
"""Something expires soon in the last third of its life."""

VERY_SOON = 9
"""Something expires very soon in the last ninth of its life."""


class Lifetime(Struct, frozen=True):
    """When something begins to be valid and expires, in seconds since the epoch.

    Attributes:
        begins_at: None if it is unknown.
    """

    begins_at: float | None
    ends_at: float

    def is_near_end(self, now: float, limit: float, part: int) -> bool:
        """Return whether the expiry is near, or has passed.

        It is near when less than `limit` seconds are left, and less than a `part`th of
        the life, such as a third. Without this part, something that lives for less than
        `limit` would always be near its expiry.
        """
        left = self.ends_at - now
        if self.begins_at is not None:
            limit = min(limit, (self.ends_at - self.begins_at) / part)
        return left <= 0 or left < limit

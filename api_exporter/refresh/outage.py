"""The time for which the peers fail. Pure: time is an argument."""

from msgspec import Struct

from api_exporter.ports import Reason


class Outage(Struct):
    """Whether anything else may be asked for meanwhile.

    Attributes:
        began: when the first failure ended.
        reason: of the newest failure of the peers.
        others_at: when one of the others may be asked for, as a probe.
        alone: whether it is the peers' path alone that is broken.
    """

    began: float
    reason: Reason
    others_at: float
    alone: bool = False

    def read(self, began: float) -> None:
        """Another resource could be read, which was asked for at such a time."""
        if began >= self.began:
            self.alone = True

    def failed(self, reason: Reason) -> None:
        """Another resource failed."""
        if reason == self.reason:
            self.alone = False

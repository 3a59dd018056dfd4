"""Looks at what a round has changed. A defect of that must not end the rounds."""

from collections.abc import Callable, Generator

from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from api_exporter.refresh.slices import Slicer


class Looking:
    """Sees a look through, in slices.

    Args:
        look: begins one, given the resource whose round has ended.
    """

    def __init__(
        self,
        look: Callable[[str], Generator[None, None, None]],
        slicer: Slicer,
        log: Logger,
    ) -> None:
        self._look = look
        self._slicer = slicer
        self._log = log
        self._defect = False

    async def __call__(self, resource: str) -> None:
        """After a round of this resource; a defect is told when it begins."""
        try:
            await self._slicer.run(self._look(resource))
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - a defect of ours must not end the refreshes
            if not self._defect:
                self._log.failure("a defect while looking for what needs attention")
            self._defect = True
        else:
            self._defect = False

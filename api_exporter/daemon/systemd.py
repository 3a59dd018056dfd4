"""sd_notify: messages to systemd about the start, the state and the event loop.

Facts: sd_notify(3). Messages are datagrams to the socket that NOTIFY_SOCKET names.
"""

import os
import re
import socket
from collections.abc import Callable, Mapping

from twisted.application.internet import TimerService
from twisted.application.service import MultiService
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

STATUS_INTERVAL = 10.0


def watchdog_interval(environ: Mapping[str, str]) -> float | None:
    """Return half of the watchdog's timeout in seconds; None without a watchdog."""
    usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    is_own = pid in {"", str(os.getpid())}
    if not (is_own and re.fullmatch("0*[1-9][0-9]{0,17}", usec)):
        return None
    return int(usec) / 1e6 / 2


class Notifier(MultiService):
    """A service that sends messages to the supervisor from the event loop.

    If the event loop hangs, watchdog messages stop, and the supervisor restarts it.

    Args:
        environ: with NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, set by systemd.
    """

    log = Logger()

    def __init__(
        self, environ: Mapping[str, str], status: Callable[[], str], clock: IReactorTime
    ) -> None:
        super().__init__()
        name = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._status = status
        if not name:
            return
        self._call_every(STATUS_INTERVAL, clock, self.send_status)
        interval = watchdog_interval(environ)
        if interval is not None:
            self._call_every(interval, clock, lambda: self.notify(WATCHDOG=1))

    def notify(self, **state: object) -> None:
        """Send assignments such as READY=1. A missing supervisor is no error."""
        if not self._address:
            return
        message = "\n".join(f"{name}={value}" for name, value in state.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.setblocking(False)
                channel.connect(self._address)
                channel.send(message.encode())
        except OSError as error:
            self.log.debug("cannot notify the supervisor: {error}", error=str(error))

    def send_status(self) -> None:
        """Send the state; to be called when it has changed."""
        self.notify(STATUS=self._status())

    def _call_every(
        self, interval: float, clock: IReactorTime, call: Callable[[], None]
    ) -> None:
        """Call a function now and at each interval; missed calls are not repeated."""
        timer = TimerService(interval, call)
        timer.clock = clock
        timer.setServiceParent(self)

    def startService(self) -> None:
        self.notify(READY=1)
        super().startService()

    def stopService(self) -> Deferred[list[object]]:
        self.notify(STOPPING=1, STATUS="stopping")
        stopped: Deferred[list[object]] = super().stopService()
        return stopped

"""One process of the exporter: the whole program on a simulated machine."""

from collections.abc import Callable, Iterator, Mapping

from twisted.internet.defer import Deferred, DeferredList, execute, maybeDeferred

from api_exporter.account import Account
from api_exporter.accounts import AccountSet
from api_exporter.daemon.systemd import Notifier
from api_exporter.service import Configuration, assemble
from api_exporter.settings.definitions import AccountSettings, Settings
from api_exporter.telemetry.process import LagMeter
from simulation.machine import Machine

OMITTED = (LagMeter, Notifier)
"""Services that measure the real machine and would only cost time."""


class RunningExporter:
    """The program from its start to its end.

    Args:
        configured: its settings, and access control.
        read: reads the settings for a reload.
        small_bytes: the most bytes of a response that needs no compute thread.
        now: returns seconds since the epoch.
        jitter: returns a random number from 0 to 1.

    Attributes:
        has_lookup: whether it began with pages of `/lookup`.
    """

    def __init__(
        self,
        machine: Machine,
        configured: Configuration,
        *,
        read: Callable[[], Settings],
        small_bytes: int,
        now: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        self.machine = machine
        self.has_lookup = configured.settings.lookup
        self._program = assemble(
            configured,
            machine,  # type: ignore[arg-type]
            pprof=False,
            log_threads=machine.log_threads,
            compute=machine.compute,
            small_bytes=small_bytes,
            dropped=lambda: 0,
            read=lambda: execute(read),
            now=now,
            jitter=jitter,
        )
        self._services = [
            s for s in self._program.services if not isinstance(s, OMITTED)
        ]
        (self._set,) = [s for s in self._services if isinstance(s, AccountSet)]

    @property
    def accounts(self) -> Mapping[str, Account]:
        """The exporter's accounts by name."""
        return self._set.accounts

    @property
    def settings(self) -> Mapping[str, AccountSettings]:
        """The settings of each account."""
        return self._set.settings

    def start(self) -> None:
        for service in self._services:
            service.privilegedStartService()
            service.startService()

    def reload(self) -> None:
        """Reload as at SIGHUP."""
        self._program.reload()

    def end(self) -> Deferred[list[tuple[bool, object]]]:
        """Stop as at SIGTERM; the result fires at the end of the process. The caller
        advances the time afterwards.
        """
        return DeferredList(
            [maybeDeferred(service.stopService) for service in reversed(self._services)]
        )

    def left_over(self) -> Iterator[str]:
        """Yield timers, connections and ports that remain after the end. A computation
        and a hanging disk do not delay it.
        """
        timers = set(self.machine.getDelayedCalls()) - self.machine.outlived
        yield from (f"timer {call}"[:200] for call in timers)
        yield from (f"connection {link}" for link in self.machine.links)
        yield from (f"port {number}" for number in self.machine.ports)

"""Daemon threads. The process does not wait for them at its end: they may hang."""

from collections.abc import Callable, Sequence
from functools import partial
from socket import EAI_MEMORY, EAI_SYSTEM, gaierror, getaddrinfo
from threading import Thread
from typing import Any
from weakref import WeakValueDictionary

from twisted.internet._resolver import GAIResolver, HostResolution
from twisted.internet.interfaces import IAddress, IHostResolution, IResolutionReceiver
from twisted.internet.posixbase import PosixReactorBase
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool
from zope.interface import implementer

MAX_THREADS = 4
"""The maximum number of threads for names and profiles; each costs address space."""


class DaemonThreadPool(ThreadPool):
    """A pool that is never stopped. The work of its threads ends with the process.

    If the system has no room for another thread, the work fails with a MemoryError.
    """

    threadFactory = staticmethod(partial(Thread, daemon=True))  # type: ignore[assignment]  # noqa: N815 - Twisted's
    no_thread: Callable[[str], Exception] = MemoryError

    def callInThreadWithCallback(  # noqa: N802 - Twisted's name
        self,
        onResult: Callable[[bool, Any], object] | None,  # noqa: N803 - the same
        func: Callable[..., Any],
        *args: object,
        **kw: object,
    ) -> None:
        try:
            super().callInThreadWithCallback(onResult, func, *args, **kw)
        except RuntimeError as error:
            self.threads[:] = [thread for thread in self.threads if thread.ident]
            if onResult is None:
                raise
            onResult(False, Failure(self.no_thread(str(error))))


class _NameThreads(DaemonThreadPool):
    no_thread = staticmethod(partial(gaierror, EAI_MEMORY))


def _look_up(
    host: bytes | str | None, port: bytes | str | int | None, *args: int, **kw: int
) -> Any:
    """Look up a name. Any failure is a gaierror: Twisted expects no other one."""
    try:
        return getaddrinfo(host, port, *args, **kw)
    except gaierror:
        raise
    except (OSError, MemoryError) as error:
        raise gaierror(EAI_SYSTEM, str(error)) from None


@implementer(IResolutionReceiver)
class _LookUp:
    def __init__(self, on_end: Callable[[], object]) -> None:
        self.receivers: list[IResolutionReceiver] = []
        self._addresses: list[IAddress] = []
        self._on_end = on_end

    def resolutionBegan(  # noqa: N802 - Twisted's name
        self,
        resolutionInProgress: IHostResolution,  # noqa: N803 - the same
    ) -> None:
        """Do nothing: the receivers know it."""

    def addressResolved(self, address: IAddress) -> None:  # noqa: N802 - the same
        self._addresses.append(address)

    def resolutionComplete(self) -> None:  # noqa: N802 - the same
        self._on_end()
        for receiver in self.receivers:
            for address in self._addresses:
                receiver.addressResolved(address)
            receiver.resolutionComplete()


class _SharedLookUps(GAIResolver):
    """Calls for a name that is being looked up share the result of that look-up.

    A look-up goes on after its request has timed out. While the name server does not
    answer, those of all requests would pile up.
    """

    def __init__(self, reactor: PosixReactorBase, threads: ThreadPool) -> None:
        super().__init__(reactor, lambda: threads, _look_up)
        # Weak, as a look-up that an unexpected error breaks does not end: it is freed.
        self._running = WeakValueDictionary[tuple[object, ...], _LookUp]()

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,  # noqa: N803 - Twisted's name
        hostName: str,  # noqa: N803 - the same
        portNumber: int = 0,  # noqa: N803 - the same
        addressTypes: Sequence[type[IAddress]] | None = None,  # noqa: N803 - the same
        transportSemantics: str = "TCP",  # noqa: N803 - the same
    ) -> IHostResolution:
        resolution = HostResolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        types = addressTypes and frozenset(addressTypes)
        key = (hostName, portNumber, types, transportSemantics)
        new = _LookUp(partial(self._running.pop, key))
        look_up = self._running.setdefault(key, new)
        look_up.receivers.append(resolutionReceiver)
        if look_up is new:
            super().resolveHostName(
                look_up, hostName, portNumber, addressTypes, transportSemantics
            )
        return resolution


def daemon_threads(max_threads: int, name: str) -> ThreadPool:
    threads = DaemonThreadPool(0, max_threads, name)
    threads.start()
    return threads


def install_name_resolver(reactor: PosixReactorBase) -> ThreadPool:
    """Return a thread pool in which the reactor resolves names from now on.

    The process waits for the reactor's own threads at its end. A resolver whose name
    server does not answer would delay the end by many seconds.
    """
    threads = _NameThreads(0, MAX_THREADS, "api-exporter")
    threads.start()
    reactor.installNameResolver(_SharedLookUps(reactor, threads))
    return threads

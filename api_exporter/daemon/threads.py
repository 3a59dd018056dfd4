"""Daemon threads. The process does not wait for them at its end: they may hang."""

from collections.abc import Callable
from functools import partial
from socket import EAI_MEMORY, EAI_SYSTEM, gaierror, getaddrinfo
from threading import Thread
from typing import Any

from twisted.internet._resolver import GAIResolver
from twisted.internet.posixbase import PosixReactorBase
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

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
    reactor.installNameResolver(GAIResolver(reactor, lambda: threads, _look_up))
    return threads

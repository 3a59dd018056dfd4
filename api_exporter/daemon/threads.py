"""Daemon threads. The process does not wait for them at its end: they may hang."""

from threading import Thread

from twisted.internet._resolver import GAIResolver
from twisted.internet.posixbase import PosixReactorBase
from twisted.python.threadpool import ThreadPool

MAX_THREADS = 4
"""The maximum number of threads for names and profiles; each costs address space."""


class _DaemonThread(Thread):
    def start(self) -> None:
        self.daemon = True
        super().start()


class DaemonThreadPool(ThreadPool):
    """A pool that is never stopped. The work of its threads ends with the process."""

    threadFactory = _DaemonThread  # noqa: N815 - the name is Twisted's


def daemon_threads(max_threads: int, name: str) -> ThreadPool:
    threads = DaemonThreadPool(0, max_threads, name)
    threads.start()
    return threads


def install_name_resolver(reactor: PosixReactorBase) -> ThreadPool:
    """Return a thread pool in which the reactor resolves names from now on.

    The process waits for the reactor's own threads at its end. A resolver whose name
    server does not answer would delay the end by many seconds.
    """
    threads = daemon_threads(MAX_THREADS, "api-exporter")
    reactor.installNameResolver(GAIResolver(reactor, lambda: threads))
    return threads

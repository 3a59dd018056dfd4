"""Daemon threads: no end of the program waits for them, as what they do may hang."""

from threading import Thread

from twisted.internet._resolver import GAIResolver
from twisted.internet.posixbase import PosixReactorBase
from twisted.python.threadpool import ThreadPool

MOST = 4
"""They resolve names and encode profiles; each costs address space."""


class _DaemonThread(Thread):
    def start(self) -> None:
        self.daemon = True
        super().start()


class DaemonThreadPool(ThreadPool):
    """A pool that is never stopped. What its threads do when the process ends, ends."""

    threadFactory = _DaemonThread  # noqa: N815 - the name is Twisted's


def daemon_threads(most: int, name: str) -> ThreadPool:
    threads = DaemonThreadPool(0, most, name)
    threads.start()
    return threads


def own_threads(reactor: PosixReactorBase) -> ThreadPool:
    """Threads of our own, in which the reactor resolves names from now on.

    The reactor's own ones are waited for: by a resolver whose name server is gone the
    end would be put off for many seconds.
    """
    threads = daemon_threads(MOST, "api-exporter")
    reactor.installNameResolver(GAIResolver(reactor, lambda: threads))
    return threads

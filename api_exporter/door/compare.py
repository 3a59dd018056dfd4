"""Whether a password has a hash: bcrypt, in a thread."""

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from api_exporter.door.checks import Compare


def in_thread(reactor: ReactorBase, threads: ThreadPool) -> Compare:
    """Compares in one of the threads."""

    def compare(password: bytes, digest: bytes) -> Deferred[bool]:
        return deferToThreadPool(reactor, threads, matches, password, digest)

    return compare


def matches(password: bytes, digest: bytes) -> bool:
    """Whether a password has a hash; what bcrypt takes for no password has none."""
    import bcrypt  # noqa: PLC0415 - for those who have passwords

    try:
        return bcrypt.checkpw(password, digest)
    except ValueError:
        return False

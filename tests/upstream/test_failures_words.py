"""No failure of the connection, however it ends, has a message with foreign words."""

import contextlib
import inspect
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from OpenSSL import SSL
from twisted.internet import error
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web import client
from twisted.web.client import ResponseFailed, ResponseNeverReceived

from api_exporter.ports import UpstreamError
from api_exporter.upstream.failures import explanation, raise_upstream_error
from tools.wording import FOREIGN_WORDS


def exceptions() -> Iterator[Exception]:
    """Yield one of each exception of Twisted's network and HTTP client, and others."""
    for module in (error, client):
        for kind in vars(module).values():
            if inspect.isclass(kind) and issubclass(kind, Exception):
                for arguments in ((), ("a text.",), (b"500",)):
                    with contextlib.suppress(TypeError, ValueError):
                        made = kind(*arguments)
                        str(made)  # some have no text for these arguments
                        yield made
    yield SSL.Error()
    yield SSL.Error([("SSL routines", "", "certificate verify failed")])
    yield SSL.SysCallError(-1, "Unexpected EOF")
    yield SSL.ZeroReturnError()
    yield MemoryError()


class WordsTests(SynchronousTestCase):
    @given(cause=st.sampled_from([*exceptions()]), depth=st.integers(0, 2))
    def test_any_exception(self, cause: Exception, depth: int) -> None:
        """A message names neither an exception nor a part of Python."""
        failure = Failure(cause)
        for kind in (ResponseFailed, ResponseNeverReceived)[:depth]:
            failure = Failure(kind([failure]))
        try:
            raise_upstream_error(failure)
        except UpstreamError as raised:
            self.assertNotRegex(f"{raised} {raised.cure}", FOREIGN_WORDS)
            self.assertNotRegex(explanation(cause), FOREIGN_WORDS)
        except Exception as other:  # noqa: BLE001 - a cancellation, or a defect
            self.assertNotIsInstance(other, UpstreamError)

"""An answer's body, gathered up to a limit."""

from io import BytesIO

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss


class Answer(Protocol):
    """Gathers a body up to a limit and cuts the connection there, or when cancelled."""

    status: int | None = None
    received = 0
    limit = 0

    def __init__(self) -> None:
        self.whole: Deferred[bytes] = Deferred(lambda _: self._abort())
        self._body = BytesIO()  # joins nothing: its value is its buffer

    def dataReceived(self, data: bytes) -> None:
        if self.whole.called:  # given up, and this came before the connection noticed
            return
        self.received += len(data)
        self._body.write(data)
        if self.received > self.limit:
            self._abort()
            self._finish()

    def connectionLost(self, reason: Failure | None = None) -> None:
        # PotentialDataLoss: neither a length nor chunks were promised, and the server
        # closed. So does HTTP/1.0 end a body; what is missing shows when it is decoded.
        if reason is None or reason.check(ResponseDone, PotentialDataLoss):
            self._finish()
        elif not self.whole.called:
            self._body.close()
            self.whole.errback(reason)

    def _finish(self) -> None:
        if not self.whole.called:
            body = self._body.getvalue()
            self._body.close()
            self.whole.callback(body)

    def _abort(self) -> None:
        # What Twisted gives a body's protocol as its transport cannot abort (#8227);
        # closing in good order would wait for a peer that may never answer.
        producer = getattr(self.transport, "_producer", None)
        if producer is not None:
            producer.abortConnection()

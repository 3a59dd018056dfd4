"""The limit of service discovery: how many answers there may be at once."""

from twisted.web.server import Request

MOST_ANSWERS = 16
"""Answers that wait for the compute thread or are being sent, for all accounts."""

MOST_BYTES = 256 * 1024 * 1024
"""Bytes of answers that are being sent, after which no further request is accepted."""


class AnswerLimit:
    """Counts the requests of service discovery that have not ended."""

    def __init__(self) -> None:
        self._bytes: dict[Request, int] = {}

    @property
    def reached(self) -> bool:
        sizes = self._bytes.values()
        return len(sizes) >= MOST_ANSWERS or sum(sizes) >= MOST_BYTES

    def begin(self, request: Request) -> None:
        """Count a request until its response has been sent or its client has gone."""
        self._bytes[request] = 0
        request.notifyFinish().addBoth(lambda _: self._bytes.pop(request))

    def hold(self, request: Request, length: int) -> None:
        """Count the bytes of its answer."""
        self._bytes[request] = length

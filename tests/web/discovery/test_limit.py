"""The limit of service discovery."""

from typing import cast

from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import Request
from twisted.web.test.requesthelper import DummyRequest

from api_exporter.web.context import MOST_ANSWERS, MOST_BYTES, AnswerLimit


class AnswerLimitTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.limit = AnswerLimit()

    def begin(self) -> Request:
        request = cast(Request, DummyRequest([b""]))
        self.limit.begin(request)
        return request

    def test_number(self) -> None:
        """So many requests reach it, until one of them has ended, however it ends."""
        requests = [self.begin() for _ in range(MOST_ANSWERS)]
        self.assertTrue(self.limit.reached)
        requests[0].finish()
        self.assertFalse(self.limit.reached)
        self.begin()
        self.assertTrue(self.limit.reached)
        requests[1].processingFailed(Failure(ConnectionDone()))
        self.assertFalse(self.limit.reached)

    def test_bytes(self) -> None:
        """So do answers that are long together, while they are being sent."""
        first, second = self.begin(), self.begin()
        self.limit.hold(first, MOST_BYTES - 1)
        self.assertFalse(self.limit.reached)
        self.limit.hold(second, 1)
        self.assertTrue(self.limit.reached)
        second.finish()
        self.assertFalse(self.limit.reached)

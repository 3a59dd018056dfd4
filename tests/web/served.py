"""Requests to pages over HTTP in memory."""

from treq import content
from treq.testing import RequestTraversalAgent
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseNeverReceived
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse
from twisted.web.resource import Resource


class ServedTestCase(SynchronousTestCase):
    """Requests to the pages of `self.tree`."""

    tree: Resource

    def ask(self, path: str, method: str = "GET", **headers: str) -> "Asked":
        """Send a request, whose response may come later."""
        return Asked(self.tree, path, method, headers)

    def answer(self, asked: "Asked") -> tuple[int, Headers, bytes]:
        """Return status, headers and body as they are on the wire."""
        asked.agent.flush()
        response = self.successResultOf(asked.response)
        body = content(response)
        asked.agent.flush()
        received = response.headers.copy()
        if isinstance(response.length, int):  # the client removes this header
            received.setRawHeaders("content-length", [str(response.length)])
        return response.code, received, self.successResultOf(body)

    def request(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, Headers, bytes]:
        return self.answer(self.ask(path, method, **headers))

    def assert_headers(self, headers: Headers, **expected: str) -> None:
        """Assert that headers have these values; "" is a missing one."""
        found = {name: header(headers, name.replace("_", "-")) for name in expected}
        self.assertEqual(expected, found)

    def assert_page(self, path: str) -> None:
        """Assert that a page can be read, but not cached, sniffed or changed."""
        status, headers, _ = self.request(path)
        answered, others, nothing = self.request(path, "HEAD")
        self.assertEqual((status, b""), (answered, nothing), path)
        for found in (headers, others):
            self.assert_headers(
                found,
                content_type=header(headers, "content-type"),
                cache_control="no-store",
                x_content_type_options="nosniff",
            )
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            status, headers, _ = self.request(path, method)
            self.assertEqual(405, status, path)
            self.assert_headers(headers, allow="GET, HEAD")
        plain = path.partition("?")[0].rstrip("/")
        for below in (f"{plain}//", f"{plain}/x"):
            self.assertEqual(404, self.request(below)[0], below)

    def leave(self, asked: "Asked") -> None:
        """Disconnect before the response."""
        asked.response.cancel()
        asked.agent.flush()
        self.failureResultOf(asked.response, ResponseNeverReceived)


class Asked:
    """A request that has been sent."""

    def __init__(
        self, tree: Resource, path: str, method: str, headers: dict[str, str]
    ) -> None:
        self.agent = RequestTraversalAgent(tree)
        sent = Headers({k.replace("_", "-"): [v] for k, v in headers.items()})
        url = f"http://exporter.example{path}".encode()
        asked = self.agent.request(method.encode(), url, sent)
        self.response: Deferred[IResponse] = asked
        self.agent.flush()


def header(headers: Headers, name: str) -> str:
    """Return a header's only value, "" if it is missing."""
    [value] = headers.getRawHeaders(name) or [""]
    return value

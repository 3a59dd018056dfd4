"""Requests to pages over HTTP in memory."""

from treq import content
from treq.testing import RequestTraversalAgent
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse
from twisted.web.resource import Resource


class ServedTestCase(SynchronousTestCase):
    """Requests to the pages of `self.tree`."""

    tree: Resource

    def request(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, Headers, bytes]:
        """Return status, headers and body as they are on the wire."""
        agent = RequestTraversalAgent(self.tree)
        sent = Headers({k.replace("_", "-"): [v] for k, v in headers.items()})
        url = f"http://exporter.example{path}".encode()
        requested = agent.request(method.encode(), url, sent)
        agent.flush()
        response: IResponse = self.successResultOf(requested)
        body = content(response)
        agent.flush()
        received = response.headers.copy()
        if isinstance(response.length, int):  # the client removes this header
            received.setRawHeaders("content-length", [str(response.length)])
        return response.code, received, self.successResultOf(body)


def header(headers: Headers, name: str) -> str:
    """Return a header's only value, "" if it is missing."""
    [value] = headers.getRawHeaders(name) or [""]
    return value

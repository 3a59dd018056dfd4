"""An upstream with the answers of a test; the client is the real one."""

import json
from collections.abc import Callable

from treq.testing import RequestTraversalAgent
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

Answer = Callable[[Request], bytes | int]


def refusal(status: int, message: str = "") -> bytes:
    """Return the body of NetBird's own error."""
    return json.dumps({"message": message, "code": status}).encode() + b"\n"


def says(
    status: int,
    body: bytes | None = None,
    media: str = "application/json",
    **headers: str,
) -> Answer:
    """Return a complete response; underscores in header names stand for hyphens.

    Without a body it is an empty list, or NetBird's own error.
    """
    if body is None:
        body = b"[]" if status < 400 else refusal(status)

    def answer(request: Request) -> bytes:
        request.setResponseCode(status)
        request.setHeader(b"Content-Type", media.encode())
        for name, value in headers.items():
            request.setHeader(name.replace("_", "-").encode(), value.encode())
        return body

    return answer


def silence(_request: Request) -> int:
    """Send no response, ever."""
    return NOT_DONE_YET


def stall(request: Request) -> int:
    """Send headers and the beginning of a body, then nothing."""
    request.setHeader(b"Content-Type", b"application/json")
    request.write(b"[")
    return NOT_DONE_YET


class ScriptedApi(Resource):
    """Answers a path with the next of its answers; the last one is repeated.

    Attributes:
        requests: all requests, as path and headers.
        queries: the query strings of the paths.
    """

    isLeaf = True

    def __init__(self, **answers: Answer | list[Answer]) -> None:
        super().__init__()
        self.answers: dict[str, list[Answer]] = {
            name: list(answer) if isinstance(answer, list) else [answer]
            for name, answer in answers.items()
        }
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.queries: list[str] = []

    def render(self, request: Request) -> bytes | int:
        path = request.path.decode()
        self.queries.append(request.uri.decode().removeprefix(path))
        self.requests.append(
            (
                path,
                {
                    name.decode().lower(): values[0].decode()
                    for name, values in request.requestHeaders.getAllRawHeaders()
                },
            )
        )
        answers = self.answers.get(path.rsplit("/", 1)[-1])
        if not answers:
            plain = "text/plain; charset=utf-8"
            return says(404, b"404 page not found\n", plain)(request)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer(request)

    def agent(self) -> RequestTraversalAgent:
        """Connect a client to this upstream, in memory."""
        return RequestTraversalAgent(self)

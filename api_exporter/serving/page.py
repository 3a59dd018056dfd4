"""Pages that can be read and nothing else: the classes that all others extend."""

import json

from twisted.web.resource import Resource
from twisted.web.server import Request

from api_exporter.serving.visibility import NONE, Accounts

NO_ACCOUNT = "There is no such account."
"""Also said of one that is there, to a client that may not know of it."""


def keep_private(request: Request) -> None:
    """Let nobody keep the answer, which tells how things are now, or guess its type."""
    request.setHeader(b"Cache-Control", b"no-store")
    request.setHeader(b"X-Content-Type-Options", b"nosniff")


def keep_at_home(request: Request) -> None:
    """Let no other site's page have the answer, as a picture, a script or otherwise."""
    request.setHeader(b"Cross-Origin-Resource-Policy", b"same-origin")


def may_know(request: Request) -> Accounts:
    found: Accounts = getattr(request, "accounts", NONE)
    return found


def refuse(request: Request, status: int, line: str) -> bytes:
    """Say in a line of text why there is no page."""
    request.setResponseCode(status)
    request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
    return f"{line}\n".encode()


class ReadOnlyPage(Resource):
    """Answers GET and HEAD; anything else is 405.

    Subclasses implement `render_GET`; HEAD is the same without the body.
    """

    def render(self, request: Request) -> bytes | int:
        """Refuse other methods in one line, as RFC 9110, 15.5.6 asks."""
        if request.method in {b"GET", b"HEAD"}:
            answer: bytes | int = super().render(request)
            return answer
        request.setHeader(b"Allow", b"GET, HEAD")
        return refuse(request, 405, "This page can only be read: GET or HEAD.")


class Refusal(Resource):
    """The same few words for everybody, whatever the method."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__()
        self._status = status
        self._message = message

    def render(self, request: Request) -> bytes:
        return refuse(request, self._status, self._message)


class TextPage(ReadOnlyPage):
    """A page that is made afresh for every request, and small."""

    media_type = b"text/plain; charset=utf-8"

    def text(self, request: Request) -> str:
        """The page; what is not 200 sets the request's status."""
        raise NotImplementedError

    def render_GET(self, request: Request) -> bytes:
        request.setHeader(b"Content-Type", self.media_type)
        keep_private(request)
        return self.text(request).encode()


class JsonPage(TextPage):
    """Such a page that is a JSON object."""

    media_type = b"application/json"

    def answer(self, request: Request) -> dict[str, object]:
        """The object; what is not 200 sets the request's status."""
        raise NotImplementedError

    def text(self, request: Request) -> str:
        return json.dumps(self.answer(request), indent=2) + "\n"

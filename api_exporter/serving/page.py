"""Pages that can be read and nothing else: the classes that all others extend."""

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
    """The accounts that the client may know of."""
    found: Accounts = getattr(request, "accounts", NONE)
    return found


class ReadOnlyPage(Resource):
    """Answers GET and HEAD; anything else is 405.

    Subclasses implement `render_GET`; HEAD is the same without the body.
    """

    def render(self, request: Request) -> bytes | int:
        """Refuse other methods in one line, as RFC 9110, 15.5.6 asks."""
        if request.method in {b"GET", b"HEAD"}:
            answer: bytes | int = super().render(request)
            return answer
        request.setResponseCode(405)
        request.setHeader(b"Allow", b"GET, HEAD")
        request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
        return b"This page can only be read: GET or HEAD.\n"


class Refusal(Resource):
    """The same few words for everybody, whatever the method."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__()
        self._status = status
        self._message = message

    def render(self, request: Request) -> bytes:
        request.setResponseCode(self._status)
        request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
        return f"{self._message}\n".encode()


class TextPage(ReadOnlyPage):
    """A page that is made afresh for every request, and small."""

    media_type = b"text/plain; charset=utf-8"

    def text(self, request: Request) -> str:
        """The page; what is not 200 sets the request's status."""
        raise NotImplementedError

    def render_GET(self, request: Request) -> bytes:
        """Answer with the text."""
        request.setHeader(b"Content-Type", self.media_type)
        keep_private(request)
        return self.text(request).encode()

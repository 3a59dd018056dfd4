"""Base classes of read-only pages."""

import json
from collections.abc import Mapping

from twisted.web.resource import Resource
from twisted.web.server import Request

from api_exporter.ports import NO_ACCOUNTS, Accounts

ACCOUNT_NOT_FOUND = "There is no such account."
"""The message for an account that does not exist, or that the client may not see."""


def forbid_caching(request: Request) -> None:
    """Forbid caches to store the response, and browsers to guess its type."""
    request.setHeader(b"Cache-Control", b"no-store")
    request.setHeader(b"X-Content-Type-Options", b"nosniff")


def forbid_other_sites(request: Request) -> None:
    """Forbid pages of other sites to load the response, as an image or otherwise."""
    request.setHeader(b"Cross-Origin-Resource-Policy", b"same-origin")


def visible_accounts(request: Request) -> Accounts:
    found: Accounts = getattr(request, "accounts", NO_ACCOUNTS)
    return found


def error_line(request: Request, status: int, line: str) -> bytes:
    """Set the status, and return a line of text that says why there is no page."""
    request.setResponseCode(status)
    request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
    return f"{line}\n".encode()


Answer = bytes | str | Mapping[str, object] | int
"""A body, of which a mapping becomes JSON, or NOT_DONE_YET."""


class ReadOnlyPage(Resource):
    """A page for GET and HEAD that is made for each request, and not cached.

    Other methods get 405; HEAD is the same as GET without the body.
    """

    media_type = b"text/plain; charset=utf-8"

    def page(self, request: Request) -> Answer:
        """Return the page. It sets the request's status if that is not 200."""
        raise NotImplementedError

    def render(self, request: Request) -> bytes | int:
        """Refuse other methods in one line (RFC 9110, 15.5.6)."""
        if request.method in {b"GET", b"HEAD"}:
            forbid_caching(request)
            answer: bytes | int = super().render(request)
            return answer
        request.setHeader(b"Allow", b"GET, HEAD")
        return error_line(request, 405, "This page can only be read: GET or HEAD.")

    def render_GET(self, request: Request) -> bytes | int:
        request.setHeader(b"Content-Type", self.media_type)
        answer = self.page(request)
        if isinstance(answer, Mapping):
            answer = json.dumps(answer, indent=2) + "\n"
        return answer.encode() if isinstance(answer, str) else answer


class ErrorPage(Resource):
    """An error in one line, for all methods."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__()
        self._status = status
        self._message = message

    def render(self, request: Request) -> bytes:
        return error_line(request, self._status, self._message)

"""The document of pages that reload themselves: style, script and their policy.

The browser accepts only this style and script: the policy has their hashes. The script
reloads a visible page every few seconds, but never a hidden one.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from pkgutil import get_data

from twisted.web.server import Request
from twisted.web.template import Tag, flattenString, tags

from api_exporter.serving.page import TextPage, forbid_other_sites
from api_exporter.web.context import PROFILES_PATH, RUNBOOKS_PATH, SiteContext, TTLCache
from api_exporter.web.status import formatting


def _read(name: str) -> str:
    return (get_data("api_exporter.web.status", name) or b"").decode()


STYLE, SCRIPT = _read("page.css"), _read("page.js")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        f"style-src {_hash(STYLE)}",
        f"script-src {_hash(SCRIPT)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The Content-Security-Policy. The empty icon is a `data:` image, which saves the
request for a real one."""


def set_security_headers(request: Request) -> None:
    """Set headers that forbid other scripts, frames and sites."""
    request.setHeader(b"Content-Security-Policy", POLICY.encode())
    request.setHeader(b"Referrer-Policy", b"no-referrer")
    forbid_other_sites(request)


def markup(tag: Tag) -> str:
    """Return a tag as text. It has no deferred parts, so it is rendered at once."""
    parts: list[bytes] = []
    flattenString(None, tag).addCallback(parts.append)
    return parts[0].decode()


DOCUMENTATION = "https://forge.not-published.example/api-exporter/tree/main/docs"
"""A placeholder in `.example` (deploy/addresses) gets no link."""


def _footer(context: SiteContext, account: str) -> str:
    """Return links to other pages, of this account if there are several."""
    query = f"?account={account}" if account else ""
    links = [
        *([("./", "All accounts")] if account else []),
        (context.metrics_path.lstrip("/") + query, "Metrics"),
        (f"health{query}", "Health"),
        (f"ready{query}", "Ready"),
        *([(f"{PROFILES_PATH}/", "Profiles")] if context.profiles else []),
        (RUNBOOKS_PATH, "Runbooks"),
        *([] if ".example/" in DOCUMENTATION else [(DOCUMENTATION, "Documentation")]),
    ]
    return markup(tags.footer([tags.a(word, href=href) for href, word in links]))


class LivePage(TextPage):
    """A page that reloads itself; rendered once a second at most, for all clients.

    Args:
        account: its name, "" if there is only one, or for all accounts.
    """

    media_type = b"text/html; charset=utf-8"

    def __init__(self, context: SiteContext, account: str = "") -> None:
        super().__init__()
        self._version = context.build.details
        self._account = account
        self._footer = _footer(context, account)
        self._now = context.now
        self.cache = TTLCache[str](context.clock.seconds)

    def document(self) -> str:
        """Render the page; see `html`."""
        raise NotImplementedError

    def render_GET(self, request: Request) -> bytes:
        set_security_headers(request)
        return super().render_GET(request)

    def text(self, _request: Request) -> str:
        return self.cache.get(None, self.document)

    def top(self, now: float) -> Tag:
        return tags.div(
            tags.span(f"api-exporter {self._version}"),
            tags.span("Account ", tags.b(self._account)) if self._account else "",
            tags.span(f"{formatting.day(now)} ", formatting.time_of_day(now), " UTC"),
            class_="top",
        )

    def html(self, *, title: str, main: str) -> str:
        """Return the document around its variable part, which is markup."""
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
{main}
<p id="lost" role="status" hidden>The exporter does not answer.
This page shows its last answer.</p>
{self._footer}
<script>{SCRIPT}</script>
</body>
</html>
"""

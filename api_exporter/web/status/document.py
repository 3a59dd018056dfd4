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

from api_exporter.serving.page import forbid_other_sites
from api_exporter.web.account_page import AccountPage, Networks
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


class LivePage(AccountPage):
    """A page that reloads itself; rendered once a second at most, for all clients."""

    media_type = b"text/html; charset=utf-8"

    def __init__(self, networks: Networks, context: SiteContext) -> None:
        super().__init__(networks, context)
        self.cache = TTLCache[str](context.clock.seconds)

    def render_GET(self, request: Request) -> bytes | int:
        set_security_headers(request)
        return super().render_GET(request)

    def top(self, now: float, account: str) -> Tag:
        return tags.div(
            tags.span(f"api-exporter {self.context.build.details}"),
            tags.span("Account ", tags.b(account)) if account else "",
            tags.span(f"{formatting.day(now)} ", formatting.time_of_day(now), " UTC"),
            class_="top",
        )

    def _footer(self, account: str) -> str:
        """Return links to other pages, of this account if there are several."""
        query = f"?account={account}" if account else ""
        profiles = [(f"{PROFILES_PATH}/", "Profiles")] if self.context.profiles else []
        links = [
            *([("./", "All accounts")] if account else []),
            (self.context.metrics_path.lstrip("/") + query, "Metrics"),
            (f"health{query}", "Health"),
            (f"ready{query}", "Ready"),
            *profiles,
            (RUNBOOKS_PATH, "Runbooks"),
            *(
                []
                if ".example/" in DOCUMENTATION
                else [(DOCUMENTATION, "Documentation")]
            ),
        ]
        return markup(tags.footer([tags.a(word, href=href) for href, word in links]))

    def html(self, *, title: str, main: str, account: str = "") -> str:
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
{self._footer(account)}
<script>{SCRIPT}</script>
</body>
</html>
"""

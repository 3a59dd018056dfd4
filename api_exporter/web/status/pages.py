"""The pages for people: the status of an account, its findings, and all accounts.

`pages.html` is their template. The browser accepts only its style and script: the
policy has their hashes. The script reloads a visible page every few seconds.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from hashlib import sha256
from pkgutil import get_data
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from twisted.web.server import Request

from api_exporter import formatting
from api_exporter.attention.finding import Finding
from api_exporter.formatting import plural
from api_exporter.netbird.resources import PROBE_PATH
from api_exporter.ports import Attempt
from api_exporter.refresh.network import AccountNetwork
from api_exporter.report import verdict, words
from api_exporter.report.document import AccountEntry, Document
from api_exporter.report.verdict import VerdictWord
from api_exporter.serving.page import error_line, forbid_other_sites
from api_exporter.web.account_page import AccountPage
from api_exporter.web.context import PROFILES_PATH, RUNBOOKS_PATH
from api_exporter.web.status.chart import chart, strip

if TYPE_CHECKING:
    from jinja2 import Template

FINDINGS_PATH = "findings"

FINDINGS_PER_PAGE = 1_000
"""Findings on a page. The page is rendered at once, which takes 10 ms."""

MAX_SHOWN = 50
"""The maximum number of findings on the status page."""

DOCUMENTATION = "https://forge.not-published.example/api-exporter/tree/main/docs"
"""A placeholder in `.example` (deploy/addresses) gets no link."""


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
"""The Content-Security-Policy. The icon is a `data:` image, which saves a request."""


def set_security_headers(request: Request) -> None:
    request.setHeader(b"Content-Security-Policy", POLICY.encode())
    request.setHeader(b"Referrer-Policy", b"no-referrer")
    forbid_other_sites(request)


@cache
def _template() -> "Template":
    """Return the template. Only the first page imports Jinja2, which takes 2 MB."""
    from jinja2 import Environment, StrictUndefined, pass_context  # noqa: PLC0415
    from markupsafe import Markup  # noqa: PLC0415

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters = environment.filters | {
        "short": formatting.short_duration,
        "long": formatting.long_duration,
        "age": pass_context(lambda c, at: (c["now"] - at).total_seconds()),
        "clock": pass_context(
            lambda c, at: formatting.clock_time(at.timestamp(), c["now"].timestamp())
        ),
        "expiry": pass_context(
            lambda c, at: verdict.expiry_text((at - c["now"]).total_seconds())
        ),
    }
    environment.globals = {
        "style": Markup(STYLE),  # noqa: S704 - a file of the package
        "script": Markup(SCRIPT),  # noqa: S704 - the same
        "instant": formatting.instant,
        "count": "{:,}".format,
        "few": words.few,
        "headline": words.headline,
        "counts": words.counts,
        "other_counts": words.other_counts,
        "unchecked": words.unchecked,
        "plural": plural,
        "meanings": verdict.STATE_MEANINGS,
        "state_verdicts": verdict.STATE_VERDICTS,
    }
    return environment.from_string(_read("pages.html"))


class LivePage(AccountPage):
    """A page that reloads itself."""

    media_type = b"text/html; charset=utf-8"

    def render_GET(self, request: Request) -> bytes | int:
        set_security_headers(request)
        return super().render_GET(request)

    def html(
        self,
        page: str,
        title: str,
        document: Document,
        name: str = "",
        *,
        host: str = "",
        **values: Any,
    ) -> str:
        """Return a page of the template.

        Args:
            title: begins the title, before the account's name.
        """
        return _template().render(
            page=page,
            title=[title, name, "api-exporter"],
            document=document,
            now=document.generated_at,
            version=self.context.build.details,
            name=name,
            host=host,
            links=list(self._links(name)),
            address=partial(findings_address, name),
            icon=icon(document.verdict),
            **values,
        )

    def _links(self, account: str) -> Iterator[tuple[str, str]]:
        """Yield links to other pages, of this account if there are several."""
        query = f"?account={account}" if account else ""
        if account:
            yield "./", "All accounts"
        if account or "" in self.networks:
            yield findings_address(account), "Findings"
        yield RUNBOOKS_PATH, "Runbooks"
        yield f"status.json{query}", "status.json"
        yield self.context.metrics_path.lstrip("/") + query, "Metrics"
        if "" in self.networks:
            yield "sd?port=9100", "Targets"
        yield f"health{query}", "Health"
        yield f"ready{query}", "Ready"
        if self.context.profiles:
            yield f"{PROFILES_PATH}/", "Profiles"
        if ".example/" not in DOCUMENTATION:
            yield DOCUMENTATION, "Documentation"


_ICON_COLOURS: Mapping[VerdictWord, str] = {
    "ok": "18794a",
    "warning": "8f5f00",
    "critical": "b3261e",
    "unknown": "6b747b",
}


def icon(word: VerdictWord) -> str:
    """Return a disc in the colour of the verdict, as the address of an image."""
    return (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'"
        " viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7'"
        f" fill='%23{_ICON_COLOURS[word]}'/%3E%3C/svg%3E"
    )


def findings_address(account: str, page: int = 1, about: str = "") -> str:
    """Return the link to a page of findings, from another page."""
    query = {"account": account, "about": about, "page": "" if page == 1 else page}
    shown = urlencode({name: value for name, value in query.items() if value})
    return "?".join(filter(None, (FINDINGS_PATH, shown)))


class Status(LivePage):
    """`/`: the status of an account; of several a line for each, the worst first."""

    def one(self, _request: Request, network: AccountNetwork) -> str:
        document = self.context.document([network], max_findings=MAX_SHOWN)
        [account] = document.accounts
        samples = network.history.samples(self.now())
        return self.html(
            "status",
            account.short,
            document,
            network.account,
            account=account,
            host="a simulated network"
            if self.context.simulated
            else urlsplit(network.url).netloc,
            uptime=self.context.uptime(),
            samples=samples,
            chart=chart(samples, self.context.uptime()),
            strip=strip(network.history.severities(self.now())),
            note=network.plan.intervals_note,
            collectors=network.selection.collectors,
            series=network.pages.series(),
            lengths=network.pages.lengths(),
            requests=[*_requests(network)],
        )

    def many(self, request: Request) -> str:
        document = self.visible_document(request)
        readings = [account.reading.verdict for account in document.accounts]
        heading = verdict.summary(readings)
        shown = {account.account for account in document.accounts}
        return self.html(
            "accounts",
            heading,
            document,
            heading=heading,
            accounts=sorted(document.accounts, key=_importance),
            strips={
                name: strip(self.networks[name].history.severities(self.now()))
                for name in self.networks.keys() & shown
            },
        )


def _importance(account: AccountEntry) -> tuple[bool, int, int, str]:
    """Return a key that sorts unread accounts first, then by the worst finding."""
    rank = verdict.WORST_FIRST.index
    reading = account.reading.verdict
    is_working = reading in verdict.WORKING
    return is_working, rank(account.verdict), rank(reading), account.account


def _requests(network: AccountNetwork) -> Iterator[tuple[Attempt, VerdictWord, str]]:
    """Yield the newest requests first. An error is not repeated."""
    shown = ""
    for attempt in reversed(network.telemetry.recent):
        problem = str(attempt.error or "")
        word: VerdictWord = "critical" if problem else "ok"
        if attempt.path == PROBE_PATH and attempt.status is not None:
            word, problem = "unknown", "Connection test: any response is good."
        yield attempt, word, "" if problem == shown else problem
        shown = problem


ABOUT: Mapping[str, Callable[[Finding], bool]] = {
    "": lambda _: True,
    "network": lambda one: one.kind.object_type == "network",
    "route": lambda one: one.kind.object_type == "route",
    "expiry": lambda one: one.until is not None,
}
"""The findings of a page, by the parameter `about`."""


class Findings(LivePage):
    """`/findings`: all findings, a thousand a page: `page=2` is the second one."""

    def one(self, request: Request, network: AccountNetwork) -> str | bytes:
        """Return the page of `page=N`: the first by default, the last at most.

        With `about=` it has the findings about some objects only.
        """
        about = request.args.get(b"about", [b""])[0].decode("ascii", "replace")
        if about not in ABOUT:
            allowed = ", ".join(filter(None, ABOUT))
            return error_line(request, 400, f"about: it must be one of {allowed}")
        lines = [*filter(ABOUT[about], network.findings.found.lines)]
        last = max(1, -(-len(lines) // FINDINGS_PER_PAGE))
        number = request.args.get(b"page", [b""])[0]
        requested = int(number) if number.isdigit() and len(number) < 6 else 1
        page = min(max(1, requested), last)
        begin = (page - 1) * FINDINGS_PER_PAGE
        listed = lines[begin : begin + FINDINGS_PER_PAGE]
        document = self.context.document([network], lines=listed, max_findings=None)
        [account] = document.accounts
        return self.html(
            "findings",
            f"{account.network.short} – findings",
            document,
            network.account,
            account=account,
            about=about,
            number_=page,
            last=last,
            range=f"{begin + 1:,} to {begin + len(listed):,} of {len(lines):,}",
        )

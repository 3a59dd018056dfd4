"""`/findings`: all findings of an account, the worst first."""

from html import escape

from twisted.web.server import Request

from api_exporter.netbird.resources import UP
from api_exporter.refresh.network import AccountNetwork
from api_exporter.subjects.watch import FindingList
from api_exporter.web.context import SiteContext
from api_exporter.web.status import findings, verdict
from api_exporter.web.status.document import LivePage, markup

FINDINGS_PER_PAGE = 1_000
"""Findings on a page. The page is rendered at once, which takes 10 ms."""


class Findings(LivePage):
    """All findings, a thousand a page: `page=2` is the second one."""

    def __init__(self, network: AccountNetwork, context: SiteContext) -> None:
        super().__init__(context, network.account)
        self._network = network
        self._runbooks = context.runbooks

    def text(self, request: Request) -> str:
        """Return the page of `page=N`: the first by default, the last at most."""
        found = self._network.attention.found
        last = max(1, -(-len(found.lines) // FINDINGS_PER_PAGE))
        number = request.args.get(b"page", [b""])[0]
        requested = int(number) if number.isdigit() and len(number) < 6 else 1
        page = min(max(1, requested), last)
        return self.cache.get(page, lambda: self._page(found, page, last))

    def _page(self, found: FindingList, page: int, last: int) -> str:
        now, account = self._now(), self._network.account
        state = verdict.network_verdict(found, self._network.telemetry.freshness[UP])
        begin = (page - 1) * FINDINGS_PER_PAGE
        listed = found.lines[begin : begin + FINDINGS_PER_PAGE]
        shown = findings.items(listed, now, self._runbooks)
        if not listed:
            shown = findings.legend(
                findings.NO_PROBLEM if found.counts else "None yet."
            )
        links = [
            f'<a href="{findings.address(account, at)}">{word}</a>'
            for word, at in (("Previous", page - 1), ("Next", page + 1))
            if 1 <= at <= last
        ]
        range_ = f"{begin + 1:,} to {begin + len(listed):,} of {len(found.lines):,}. "
        status = escape(f"./?account={account}" if account else "./")
        main = (
            f"<main>{markup(self.top(now))}"
            f'<section class="verdict {state.tone}"><h1>{state.headline}</h1></section>'
            f"<section><h2>All findings</h2>{shown}"
            f"{findings.legend(range_ + ' '.join(links)) if links else ''}"
            f"{findings.unchecked_note(found)}"
            f'<p><a href="{status}">Status page</a></p></section></main>'
        )
        title = filter(None, (state.short, "findings", account, "api-exporter"))
        return self.html(title=" – ".join(title), main=main)

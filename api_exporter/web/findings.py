"""`/findings`: all findings of an account, the worst first."""

from html import escape

from twisted.web.server import Request

from api_exporter.netbird.resources import UP
from api_exporter.refresh.network import AccountNetwork
from api_exporter.subjects.watch import FindingList
from api_exporter.web.status import findings, verdict
from api_exporter.web.status.document import LivePage, markup

FINDINGS_PER_PAGE = 1_000
"""Findings on a page. The page is rendered at once, which takes 10 ms."""


class Findings(LivePage):
    """All findings, a thousand a page: `page=2` is the second one."""

    def one(self, request: Request, network: AccountNetwork) -> str:
        """Return the page of `page=N`: the first by default, the last at most."""
        found = network.attention.found
        last = max(1, -(-len(found.lines) // FINDINGS_PER_PAGE))
        number = request.args.get(b"page", [b""])[0]
        requested = int(number) if number.isdigit() and len(number) < 6 else 1
        page = min(max(1, requested), last)
        return self.cache.get(
            (network, page), lambda: self._page(network, found, page, last)
        )

    def _page(
        self, network: AccountNetwork, found: FindingList, page: int, last: int
    ) -> str:
        now, account = self.now(), network.account
        state = verdict.network_verdict(found, network.telemetry.freshness[UP])
        begin = (page - 1) * FINDINGS_PER_PAGE
        listed = found.lines[begin : begin + FINDINGS_PER_PAGE]
        shown = findings.items(listed, now, self.context.runbooks)
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
            f"<main>{markup(self.top(now, account))}"
            f'<section class="verdict {state.tone}"><h1>{state.headline}</h1></section>'
            f"<section><h2>All findings</h2>{shown}"
            f"{findings.legend(range_ + ' '.join(links)) if links else ''}"
            f"{findings.unchecked_note(found)}"
            f'<p><a href="{status}">Status page</a></p></section></main>'
        )
        title = filter(None, (state.short, "findings", account, "api-exporter"))
        return self.html(title=" – ".join(title), main=main, account=account)

"""`/` for several accounts: a line for each, the worst first."""

from collections.abc import Mapping
from html import escape

from twisted.web.server import Request
from twisted.web.template import tags

from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import visible_accounts
from api_exporter.serving.visibility import ALL_ACCOUNTS, Accounts
from api_exporter.web.context import SiteContext
from api_exporter.web.status import findings, formatting
from api_exporter.web.status.document import LivePage, markup
from api_exporter.web.status.verdict import (
    WORKING,
    WORST_FIRST,
    Verdict,
    reading_verdict,
    summary,
)

# Templates, not tags: tags take 0.2 s for 500 rows.
_TABLE = (
    '<section><h2>Accounts</h2><div class="box"><table aria-label="Accounts">'
    "<thead><tr>"
    '<th scope="col" class="w">Account</th><th scope="col" class="w">State</th>'
    '<th scope="col" class="n">Peers</th><th scope="col" class="n">Needs attention</th>'
    '<th scope="col" class="w">Details</th>'
    "</tr></thead><tbody>{rows}</tbody></table></div></section>"
)
_ROW = (
    '<tr><td class="lead" role="rowheader"><a href="?account={name}">{name}</a></td>'
    '<td class="mark"><span class="state {tone}">{short}</span></td>'
    '<td class="n" data-after="peers">{peers}</td>'
    "{attention}<td>{what}</td></tr>"
)

_ATTENTION = '<td class="n" data-before="needs attention:">{counts}</td>'
_VOID = f'<td class="n void">{formatting.MISSING}</td>'


class Overview(LivePage):
    """The list of accounts."""

    def __init__(
        self, accounts: Mapping[str, AccountNetwork], context: SiteContext
    ) -> None:
        super().__init__(context)
        self._accounts = accounts

    def text(self, request: Request) -> str:
        """Return the page. It is cached only for clients that may see all accounts."""
        known = visible_accounts(request)
        return super().text(request) if known is ALL_ACCOUNTS else self.document(known)

    def document(self, known: Accounts = ALL_ACCOUNTS) -> str:
        """Render a row for each account that the client may see."""
        now = self._now()
        found = {
            name: reading_verdict(network.telemetry.freshness, network.inventory, now)
            for name, network in self._accounts.items()
            if name in known
        }
        working = sum(one.tone in WORKING for one in found.values())
        tone, headline = summary(found.values())
        order = sorted(found, key=lambda n: (WORST_FIRST.index(found[n].tone), n))
        verdicts = tags.section(tags.h1(headline), class_=f"verdict {tone}")
        rows = "".join(self._row(name, found[name]) for name in order)
        table = _TABLE.format(rows=rows) if rows else ""
        return self.html(
            title=f"{working} of {len(found)} – api-exporter",
            main=f"<main>{markup(self.top(now))}{markup(verdicts)}{table}</main>",
        )

    def _row(self, name: str, found: Verdict) -> str:
        network = self._accounts[name]
        peers, counts = (
            network.inventory.peers,
            findings.counts_text(network.attention.found),
        )
        return _ROW.format(
            name=escape(name),
            tone=found.tone,
            short=escape(found.short),
            peers=formatting.MISSING if peers is None else f"{len(peers):,}",
            attention=_VOID if counts is None else _ATTENTION.format(counts=counts),
            what=escape(found.why or found.headline),
        )

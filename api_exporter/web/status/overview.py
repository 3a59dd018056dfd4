"""`/` for several accounts: a line for each, the worst first."""

from html import escape

from twisted.web.template import tags

from api_exporter.refresh.network import AccountNetwork
from api_exporter.web.account_page import Networks
from api_exporter.web.status import findings, formatting
from api_exporter.web.status.document import markup
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


def accounts(networks: Networks, now: float) -> tuple[str, str]:
    """Return the title, and the verdict and table of the accounts as markup."""
    found = {
        name: reading_verdict(network.telemetry.freshness, network.inventory, now)
        for name, network in networks.items()
    }
    working = sum(one.tone in WORKING for one in found.values())
    tone, headline = summary(found.values())
    order = sorted(found, key=lambda n: (WORST_FIRST.index(found[n].tone), n))
    verdicts = tags.section(tags.h1(headline), class_=f"verdict {tone}")
    rows = "".join(_row(networks[name], found[name]) for name in order)
    table = _TABLE.format(rows=rows) if rows else ""
    return f"{working} of {len(found)} – api-exporter", f"{markup(verdicts)}{table}"


def _row(network: AccountNetwork, found: Verdict) -> str:
    peers, counts = (
        network.inventory.peers,
        findings.counts_text(network.attention.found),
    )
    return _ROW.format(
        name=escape(network.account),
        tone=found.tone,
        short=escape(found.short),
        peers=formatting.MISSING if peers is None else f"{len(peers):,}",
        attention=_VOID if counts is None else _ATTENTION.format(counts=counts),
        what=escape(found.why or found.headline),
    )

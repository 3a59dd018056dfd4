"""`/`: the status page."""

from collections.abc import Mapping, Sequence

from twisted.web.server import Request
from twisted.web.template import Flattenable, Tag, tags

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import visible_accounts
from api_exporter.serving.visibility import ALL_ACCOUNTS, Accounts
from api_exporter.subjects.users import ACCESS_TOKENS
from api_exporter.telemetry.freshness import Freshness
from api_exporter.web.status import (
    document,
    findings,
    formatting,
    overview,
    tables,
    verdict,
)
from api_exporter.web.status.chart import chart
from api_exporter.web.status.document import LivePage
from api_exporter.web.status.verdict import Verdict


class Status(LivePage):
    """The status of an account; of several a line for each, the worst first."""

    def one(self, _request: Request, network: AccountNetwork) -> str:
        return self.cache.get(network, lambda: self._status(network))

    def many(self, request: Request) -> str:
        """Return the list of accounts, cached only for clients that may see all."""
        known = visible_accounts(request)
        if known is not ALL_ACCOUNTS:
            return self._accounts(known)
        return self.cache.get(None, lambda: self._accounts(known))

    def _accounts(self, known: Accounts) -> str:
        now = self.now()
        visible = {name: one for name, one in self.networks.items() if name in known}
        title, main = overview.accounts(visible, now)
        top = document.markup(self.top(now, ""))
        return self.html(title=title, main=f"<main>{top}{main}</main>")

    def _status(self, network: AccountNetwork) -> str:
        """Render all sections, the most important first."""
        now = self.now()
        freshness, pages = network.telemetry.freshness, network.pages
        found = network.attention.found
        reading = verdict.reading_verdict(freshness, network.inventory, now)
        verdicts = sorted(
            (reading, verdict.network_verdict(found, freshness[UP])),
            key=lambda one: verdict.WORST_FIRST.index(one.tone),
        )
        dormant = [
            resource.name
            for resource in network.selection.resources
            if network.inventory.dormant(resource.name)
        ]
        first = (self.top(now, network.account), _headline(verdicts, reading))
        last = (
            self._facts(network, now),
            _peers(network, now),
            tables.resources(freshness, dormant, now, note=network.intervals_note),
            tables.collectors(network.collectors, pages.series(), pages.lengths()),
            tables.newest_requests(network.telemetry.recent),
        )
        attention = findings.section(found, now, self.context.runbooks, network.account)
        main = (
            f"<main>{''.join(map(document.markup, first))}{attention}"
            f"{''.join(map(document.markup, last))}</main>"
        )
        title = filter(None, (verdicts[0].short, network.account, "api-exporter"))
        return self.html(title=" – ".join(title), main=main, account=network.account)

    def _facts(self, network: AccountNetwork, now: float) -> Tag:
        context, uptime = self.context, self.context.uptime()
        upstream = "a simulated network" if context.simulated else network.url
        reachable: dict[bool | None, Flattenable] = {
            True: tables.state_mark("good", "reachable"),
            False: tables.state_mark("bad", "does not answer"),
            None: tables.state_mark("none", "no request yet"),
        }
        freshness = network.telemetry.freshness
        return tags.section(
            tags.dl(
                _fact(
                    "NetBird API",
                    tags.span(upstream, class_="path"),
                    reachable[network.telemetry.reachable],
                ),
                _fact(
                    "Token",
                    tables.state_mark(*verdict.token_state(freshness[UP])),
                    _token_expiry(network.inventory, freshness, now),
                ),
                _fact("Series", f"{sum(network.pages.series().values()):,}"),
                _fact(
                    "Running for",
                    formatting.long_duration(uptime),
                    f"since {formatting.clock_time(now - uptime, now)}",
                ),
            )
        )


def _peers(network: AccountNetwork, now: float) -> Tag:
    runs = network.history.runs(now)
    return tags.section(
        tags.h2("Peers"),
        chart(runs, now=now, step=network.history.step)
        if runs
        else tags.p("No successful refresh in the last hours.", class_="legend"),
    )


def _headline(verdicts: Sequence[Verdict], reading: Verdict) -> Tag:
    """Return both headlines, then why reading NetBird fails, and what to do."""
    return tags.section(
        tags.h1([tags.span(one.headline, class_=one.tone) for one in verdicts]),
        tags.p(reading.why, class_="why") if reading.why else "",
        [tags.p(note) for note in reading.notes],
        class_=f"verdict {verdicts[0].tone}",
    )


def _fact(name: str, value: Flattenable, more: Flattenable = "") -> Tag:
    return tags.div(tags.dt(name), tags.dd(value, tags.small(more) if more else ""))


def _token_expiry(
    inventory: Inventory, freshness: Mapping[str, Freshness], now: float
) -> Flattenable:
    """Return the token's expiry. For a refused token, add when the expiry was read."""
    end = verdict.token_expiry(inventory)
    if end is None:
        return ""
    shown: Flattenable = formatting.instant(end, verdict.expiry_text(end, now))
    if verdict.is_refused(freshness[UP]):
        read = freshness[ACCESS_TOKENS.name].last_success
        shown = [
            shown,
            "" if read is None else f", as of {formatting.clock_time(read, now)}",
        ]
    return shown

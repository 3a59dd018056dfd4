"""`/`: the status page of an account."""

from collections.abc import Mapping, Sequence

from twisted.web.template import Flattenable, Tag, tags

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.refresh.network import AccountNetwork
from api_exporter.subjects.users import ACCESS_TOKENS
from api_exporter.telemetry.freshness import Freshness
from api_exporter.web.context import SiteContext
from api_exporter.web.status import document, findings, formatting, tables, verdict
from api_exporter.web.status.chart import chart
from api_exporter.web.status.document import LivePage
from api_exporter.web.status.verdict import Verdict


class Status(LivePage):
    """The status page of an account."""

    def __init__(self, network: AccountNetwork, context: SiteContext) -> None:
        super().__init__(context, network.account)
        self._network = network
        self._runbooks = context.runbooks
        self._upstream = "a simulated network" if context.simulated else network.url
        self._uptime = context.uptime

    def document(self) -> str:
        """Render all sections, the most important first."""
        now, network = self._now(), self._network
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
        first = (self.top(now), _headline(verdicts, reading))
        last = (
            self._facts(network.inventory, now),
            self._peers(now),
            tables.resources(freshness, dormant, now, note=network.intervals_note),
            tables.collectors(network.collectors, pages.series(), pages.lengths()),
            tables.newest_requests(network.telemetry.recent),
        )
        attention = findings.section(found, now, self._runbooks, network.account)
        main = (
            f"<main>{''.join(map(document.markup, first))}{attention}"
            f"{''.join(map(document.markup, last))}</main>"
        )
        title = filter(None, (verdicts[0].short, network.account, "api-exporter"))
        return self.html(title=" – ".join(title), main=main)

    def _facts(self, inventory: Inventory, now: float) -> Tag:
        uptime = self._uptime()
        reachable: dict[bool | None, Flattenable] = {
            True: tables.state_mark("good", "reachable"),
            False: tables.state_mark("bad", "does not answer"),
            None: tables.state_mark("none", "no request yet"),
        }
        freshness = self._network.telemetry.freshness
        return tags.section(
            tags.dl(
                _fact(
                    "NetBird API",
                    tags.span(self._upstream, class_="path"),
                    reachable[self._network.telemetry.reachable],
                ),
                _fact(
                    "Token",
                    tables.state_mark(*verdict.token_state(freshness[UP])),
                    _token_expiry(inventory, freshness, now),
                ),
                _fact("Series", f"{sum(self._network.pages.series().values()):,}"),
                _fact(
                    "Running for",
                    formatting.long_duration(uptime),
                    f"since {formatting.clock_time(now - uptime, now)}",
                ),
            )
        )

    def _peers(self, now: float) -> Tag:
        runs = self._network.history.runs(now)
        return tags.section(
            tags.h2("Peers"),
            chart(runs, now=now, step=self._network.history.step)
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

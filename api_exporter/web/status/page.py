"""`/`: is it working, and if not, why? One page that says it at a glance."""

from collections.abc import Callable, Mapping

from twisted.web.template import Flattenable, Tag, tags

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.telemetry.standing import Standing
from api_exporter.web.runbooks import RUNBOOKS
from api_exporter.web.shown import Shown
from api_exporter.web.status import document, findings, formatting, tables, verdict
from api_exporter.web.status.chart import chart
from api_exporter.web.status.document import LivePage
from api_exporter.web.status.verdict import Verdict

DOCUMENTATION = "https://forge.not-published.example/api-exporter/tree/main/docs"
"""Nothing is there where it is a placeholder (deploy/addresses)."""


class Status(LivePage):
    """The status page of an account.

    Args:
        account: its name, empty where it is the only one.
        simulated: whether the upstream is one of our own.
        runbooks: where they are.
        pprof: whether profiles are served.
        uptime: seconds since the start.
        seconds: a clock.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        shown: Shown,
        *,
        account: str = "",
        version: str,
        simulated: bool,
        metrics_path: str,
        runbooks: str,
        pprof: bool,
        uptime: Callable[[], float],
        seconds: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        super().__init__(
            version=version,
            footer=footer(metrics_path, account, pprof=pprof),
            seconds=seconds,
            now=now,
        )
        self._shown = shown
        self._runbooks = runbooks
        self._upstream = "a simulated network" if simulated else shown.url
        self._uptime = uptime
        self._account = account

    def document(self) -> str:
        """Each section in its place: the answer comes first."""
        now, shown = self._now(), self._shown
        standings, pages = shown.telemetry.standings, shown.pages
        found = verdict.verdict(standings, shown.inventory, now)
        main = Tag("main")(
            self.top(now, self._account),
            _headline(found),
            findings.section(shown.attention.found, now, self._runbooks),
            self._facts(shown.inventory, now),
            self._peers(now),
            tables.resources(standings, now, note=shown.stretched),
            tables.collectors(shown.collectors, pages.series(), pages.lengths()),
            tables.calls(shown.telemetry.recent),
        )
        title = filter(None, (found.short, self._account, "api-exporter"))
        return self.html(title=" – ".join(title), main=document.markup(main))

    def _facts(self, inventory: Inventory, now: float) -> Tag:
        uptime = self._uptime()
        reachable: dict[bool | None, Flattenable] = {
            True: tables.state("good", "reachable"),
            False: tables.state("bad", "does not answer"),
            None: tables.state("none", "not called yet"),
        }
        standings = self._shown.telemetry.standings
        return tags.section(
            tags.dl(
                _fact(
                    "Upstream",
                    tags.span(self._upstream, class_="path"),
                    reachable[self._shown.telemetry.reachable],
                ),
                _fact(
                    "Token",
                    tables.state(*verdict.token(standings[UP])),
                    _token_end(inventory, standings, now),
                ),
                _fact("Series", f"{sum(self._shown.pages.series().values()):,}"),
                _fact(
                    "Running for",
                    formatting.lasting(uptime),
                    f"since {formatting.clock(now - uptime, now)}",
                ),
            )
        )

    def _peers(self, now: float) -> Tag:
        runs = self._shown.history.runs(now)
        return tags.section(
            tags.h2("Peers"),
            chart(runs, now=now, step=self._shown.history.step)
            if runs
            else tags.p("Nothing has been read in the last hours.", class_="legend"),
        )


def _headline(found: Verdict) -> Tag:
    return tags.section(
        tags.h1(found.headline),
        tags.p(found.why, class_="why") if found.why else "",
        [tags.p(note) for note in found.notes],
        class_=f"verdict {found.tone}",
    )


def _fact(name: str, value: Flattenable, more: Flattenable = "") -> Tag:
    return tags.div(tags.dt(name), tags.dd(value, tags.small(more) if more else ""))


def _token_end(
    inventory: Inventory, standings: Mapping[str, Standing], now: float
) -> Flattenable:
    """When our token ends; where it is refused by now, when that was told."""
    end = verdict.token_end(inventory)
    if end is None:
        return ""
    shown: Flattenable = formatting.instant(end, verdict.ends(end, now))
    if verdict.refused(standings[UP]):
        read = standings["access_tokens"].last_success
        shown = [shown, "" if read is None else f", said {formatting.clock(read, now)}"]
    return shown


def footer(metrics_path: str, account: str = "", *, pprof: bool) -> str:
    """Where else to look; for an account, to what there is of it."""
    query = f"?account={account}" if account else ""
    links = [
        *([("./", "All accounts")] if account else []),
        (metrics_path.lstrip("/") + query, "Metrics"),
        (f"health{query}", "Health"),
        (f"ready{query}", "Ready"),
        *([("debug/pprof/", "Profiles")] if pprof else []),
        (RUNBOOKS, "Runbooks"),
        *([] if ".example/" in DOCUMENTATION else [(DOCUMENTATION, "Documentation")]),
    ]
    return document.markup(
        tags.footer([tags.a(word, href=href) for href, word in links])
    )

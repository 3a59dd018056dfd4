"""`/`: is it working, and if not, why? One page that says it at a glance."""

from collections.abc import Callable, Mapping

from twisted.web.server import Request
from twisted.web.template import Flattenable, Tag, flattenString, tags

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.serving.page import Text
from api_exporter.telemetry.standing import Standing
from api_exporter.web.kept import Kept
from api_exporter.web.runbooks import RUNBOOKS
from api_exporter.web.shown import Shown
from api_exporter.web.status import document, findings, tables, verdict, words
from api_exporter.web.status.chart import chart
from api_exporter.web.status.verdict import Verdict

DOCUMENTATION = "https://forge.not-published.example/api-exporter/tree/main/docs"
"""Nothing is there where it is a placeholder (deploy/addresses)."""


class Status(Text):
    """The status page, made once a second at most, however many look at it.

    Args:
        account: its name, empty where it is the only one.
        simulated: whether the upstream is one of our own.
        runbooks: where they are.
        pprof: whether profiles are served.
        uptime: seconds since the start.
        seconds: a clock.
        now: seconds since the epoch.
    """

    media_type = b"text/html; charset=utf-8"

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
        super().__init__()
        self._shown = shown
        self._version = version
        self._runbooks = runbooks
        self._upstream = "a simulated network" if simulated else shown.url
        self._uptime = uptime
        self._now = now
        self._account = account
        self._footer = footer(metrics_path, account, pprof=pprof)
        self._kept = Kept(self._document, seconds)

    def render_GET(self, request: Request) -> bytes:
        """The page, which runs nothing but its own script and stands in no frame."""
        document.protect(request)
        return super().render_GET(request)

    def text(self, _request: Request) -> str:
        """The whole document."""
        return self._kept()

    def _document(self) -> str:
        now, inventory = self._now(), self._shown.inventory
        found = verdict.verdict(self._shown.telemetry.standings, inventory, now)
        main = Tag("main")(
            self._top(now),
            _headline(found),
            findings.section(self._shown.attention.found, now, self._runbooks),
            self._facts(inventory, now),
            self._peers(now),
            tables.resources(
                self._shown.telemetry.standings,
                self._series(),
                now,
                note=self._shown.stretched,
            ),
            tables.collectors(
                self._shown.collectors,
                self._shown.pages.series(),
                self._shown.pages.lengths(),
            ),
            tables.calls(self._shown.telemetry.recent),
        )
        return document.html(
            title=" – ".join(
                filter(None, (found.short, self._account, "api-exporter"))
            ),
            main=markup(main),
            footer=self._footer,
        )

    def _top(self, now: float) -> Tag:
        return tags.div(
            tags.span(f"api-exporter {self._version}"),
            tags.span("Account ", tags.b(self._account)) if self._account else "",
            tags.span(f"{words.day(now)} ", words.second(now), " UTC"),
            class_="top",
        )

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
                    words.lasting(uptime),
                    f"since {words.clock(now - uptime, now)}",
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

    def _series(self) -> dict[str, int]:
        """By resource. A collector's all count where its subject is, so once."""
        series: dict[str, int] = {}
        counts = self._shown.pages.series()
        for collector in self._shown.collectors:
            subject = collector.reads[0]
            series[subject] = series.get(subject, 0) + counts[collector.name]
        return series


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
    shown: Flattenable = words.instant(end, verdict.ends(end, now))
    if verdict.refused(standings[UP]):
        read = standings["access_tokens"].last_success
        shown = [shown, "" if read is None else f", said {words.clock(read, now)}"]
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
    return markup(tags.footer([tags.a(word, href=href) for href, word in links]))


def markup(tag: Tag) -> str:
    """A tag as text. Nothing in it has to be waited for, so it is there at once."""
    made: list[bytes] = []
    flattenString(None, tag).addCallback(made.append)
    return made[0].decode()

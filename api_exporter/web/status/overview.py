"""`/` where there are several accounts: a line for each, the worst first."""

from collections.abc import Callable, Mapping

from twisted.web.server import Request
from twisted.web.template import Tag, tags

from api_exporter.attention.finding import counted
from api_exporter.serving.page import Text
from api_exporter.web.kept import Kept
from api_exporter.web.shown import Shown
from api_exporter.web.status import document, findings, tables, words
from api_exporter.web.status.page import footer, markup
from api_exporter.web.status.verdict import Tone, Verdict, verdict

_WORST_FIRST: tuple[Tone, ...] = ("bad", "warn", "none", "good")


class Overview(Text):
    """The list of accounts, made once a second at most.

    Args:
        accounts: by name.
        seconds: a clock.
        now: seconds since the epoch.
    """

    media_type = b"text/html; charset=utf-8"

    def __init__(
        self,
        accounts: Mapping[str, Shown],
        *,
        version: str,
        metrics_path: str,
        pprof: bool,
        seconds: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        super().__init__()
        self._accounts = accounts
        self._version = version
        self._now = now
        self._footer = footer(metrics_path, pprof=pprof)
        self._kept = Kept(self._document, seconds)

    def render_GET(self, request: Request) -> bytes:
        """The page, which runs nothing but its own script and stands in no frame."""
        document.protect(request)
        return super().render_GET(request)

    def text(self, _request: Request) -> str:
        """The whole document."""
        return self._kept()

    def _document(self) -> str:
        now = self._now()
        found = {
            name: verdict(shown.telemetry.standings, shown.inventory, now)
            for name, shown in self._accounts.items()
        }
        good = sum(one.tone == "good" for one in found.values())
        tone, headline = _headline(found, good)
        order = sorted(found, key=lambda n: (_WORST_FIRST.index(found[n].tone), n))
        main = Tag("main")(
            tags.div(
                tags.span(f"api-exporter {self._version}"),
                tags.span(f"{words.day(now)} ", words.second(now), " UTC"),
                class_="top",
            ),
            tags.section(tags.h1(headline), class_=f"verdict {tone}"),
            tables.accounts(
                (name, found[name], self._peers(name), self._attention(name, now))
                for name in order
            )
            if found
            else "",
        )
        return document.html(
            title=f"{good} of {len(found)} – api-exporter",
            main=markup(main),
            footer=self._footer,
        )

    def _attention(self, name: str, now: float) -> str | None:
        return findings.counts(self._accounts[name].attention(now))

    def _peers(self, name: str) -> str | None:
        peers = self._accounts[name].inventory.peers
        return None if peers is None else f"{len(peers):,}"


def _headline(found: Mapping[str, Verdict], good: int) -> tuple[Tone, str]:
    if not found:
        return "none", "No account falls to this shard"
    tone = min((one.tone for one in found.values()), key=_WORST_FIRST.index)
    return tone, f"{good} of {counted(len(found), 'account')} working"

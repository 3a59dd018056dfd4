"""The pages for people: the status of an account, its findings, and all accounts.

`pages.html` is their template. The browser accepts only its style and script: the
policy has their hashes. The script reloads a visible page every few seconds.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from pkgutil import get_data
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from twisted.web.server import Request

from api_exporter.attention.finding import Finding, safe_line
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Peer
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.netbird.resources import CURRENT_USER, PROBE_PATH, UP, Resource
from api_exporter.ports import Attempt
from api_exporter.refresh.network import AccountNetwork
from api_exporter.report import formatting, lines, verdict
from api_exporter.report.verdict import StateWord, Tone, Verdict
from api_exporter.serving.page import error_line, forbid_other_sites, visible_accounts
from api_exporter.serving.visibility import ALL_ACCOUNTS, Accounts
from api_exporter.subjects.table import RESOURCE_BY_NAME
from api_exporter.subjects.users import ACCESS_TOKENS
from api_exporter.upstream.advice import advice
from api_exporter.web.account_page import AccountPage, Networks
from api_exporter.web.context import PROFILES_PATH, RUNBOOKS_PATH, SiteContext, TTLCache
from api_exporter.web.status.chart import chart

if TYPE_CHECKING:
    from jinja2 import Template

FINDINGS_PATH = "findings"

FINDINGS_PER_PAGE = 1_000
"""Findings on a page. The page is rendered at once, which takes 10 ms."""

MAX_SHOWN = 50
"""The maximum number of findings on the status page."""

MAX_MACHINES = 10
"""The maximum number of offline machines that the page names."""

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
    """Set headers that forbid other scripts, frames and sites."""
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
    environment.filters |= formatting.FILTERS
    environment.filters["tone"] = verdict.TONES.get
    environment.filters["clock"] = pass_context(
        lambda c, at: formatting.clock_time(at, c["now"])
    )
    environment.filters["age"] = pass_context(
        lambda c, one: lines.age(one, c["started_at"], c["now"])
    )
    environment.globals = {
        "style": Markup(STYLE),  # noqa: S704 - a file of the package
        "script": Markup(SCRIPT),  # noqa: S704 - the same
        "headline_of": lines.headline,
        "nothing_reported": lines.nothing_reported,
        "max_shown": MAX_SHOWN,
        "tones": verdict.STATE_TONES,
    }
    return environment.from_string(_read("pages.html"))


class LivePage(AccountPage):
    """A page that reloads itself; rendered once a second at most, for all clients."""

    media_type = b"text/html; charset=utf-8"

    def __init__(self, networks: Networks, context: SiteContext) -> None:
        super().__init__(networks, context)
        self.cache = TTLCache[str](context.clock.seconds)

    def render_GET(self, request: Request) -> bytes | int:
        set_security_headers(request)
        return super().render_GET(request)

    def html(
        self, page: str, title: str, account: str = "", *, tone: Tone, **values: Any
    ) -> str:
        """Return a page of the template.

        Args:
            title: begins the title, before the account's name.
            tone: the colour of the icon.
        """
        return _template().render(
            page=page,
            title=[title, account, "api-exporter"],
            now=self.now(),
            version=self.context.build.details,
            account=account,
            tone=tone,
            runbooks=self.context.runbooks,
            links=list(self._links(account)),
            address=partial(findings_address, account),
            icon=icon(tone),
            **values,
        )

    def _links(self, account: str) -> Iterator[tuple[str, str]]:
        """Yield links to other pages, of this account if there are several."""
        query = f"?account={account}" if account else ""
        if account:
            yield "./", "All accounts"
        if account or "" in self.networks:
            yield findings_address(account), "Findings"
        yield f"status.json{query}", "status.json"
        yield self.context.metrics_path.lstrip("/") + query, "Metrics"
        yield f"health{query}", "Health"
        yield f"ready{query}", "Ready"
        if self.context.profiles:
            yield f"{PROFILES_PATH}/", "Profiles"
        yield RUNBOOKS_PATH, "Runbooks"
        if ".example/" not in DOCUMENTATION:
            yield DOCUMENTATION, "Documentation"


_ICON_COLOURS: Mapping[Tone, str] = {
    "good": "18794a",
    "warn": "8f5f00",
    "bad": "b3261e",
    "none": "6b747b",
}


def icon(tone: Tone) -> str:
    """Return a disc in the colour of the verdict, as the address of an image."""
    return (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'"
        " viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7'"
        f" fill='%23{_ICON_COLOURS[tone]}'/%3E%3C/svg%3E"
    )


def findings_address(account: str, page: int = 1, about: str = "") -> str:
    """Return the link to a page of findings, from another page."""
    query = {"account": account, "about": about, "page": "" if page == 1 else page}
    shown = urlencode({name: value for name, value in query.items() if value})
    return "?".join(filter(None, (FINDINGS_PATH, shown)))


class Status(LivePage):
    """`/`: the status of an account; of several a line for each, the worst first."""

    def one(self, _request: Request, network: AccountNetwork) -> str:
        return self.cache.get(network, lambda: self._status(network))

    def many(self, request: Request) -> str:
        """Return the list of accounts, cached only for clients that may see all."""
        known = visible_accounts(request)
        if known is not ALL_ACCOUNTS:
            return self._accounts(known)
        return self.cache.get(None, lambda: self._accounts(known))

    def _status(self, network: AccountNetwork) -> str:
        now, context = self.now(), self.context
        freshness, inventory = network.states, network.inventory
        found = network.attention.found
        reading = verdict.reading_verdict(freshness, inventory, now)
        of_network = verdict.network_verdict(found, freshness[UP])
        verdicts = sorted(
            (reading, of_network), key=lambda one: verdict.WORST_FIRST.index(one.tone)
        )
        worst = None
        started_at = network.attention.last.started_at
        if of_network.tone in {"bad", "warn"}:
            worst = lines.newest_of_the_worst(found, started_at, now)
        samples = network.history.samples(now)
        new, longer, infos = lines.by_age(found.lines[:MAX_SHOWN], started_at, now)
        end = verdict.token_expiry(inventory)
        is_refused = verdict.is_refused(freshness[UP])
        words = verdict.state_words(network, now)
        return self.html(
            "status",
            verdicts[0].short,
            network.account,
            tone=verdicts[0].tone,
            verdicts=verdicts,
            reading=reading,
            of_network=of_network,
            worst=worst,
            counts=lines.other_counts(found, worst),
            found=found,
            finding_groups=[
                ("New (24 h)", "", new),
                ("Longer" if new else "", "", longer),
                ("", f"{len(infos):,} info", infos),
            ],
            started_at=started_at,
            upstream="a simulated network" if context.simulated else network.url,
            host="a simulated network"
            if context.simulated
            else urlsplit(network.url).netloc,
            read_at=freshness[UP].last_success,
            peers=inventory.peers,
            networks=network.attention.last.networks,
            routes=network.attention.last.routes,
            expiring=sum(map(ABOUT["expiry"], found.findings)),
            offline=[*_offline_machines(inventory, now)],
            max_machines=MAX_MACHINES,
            fresh=sum(word == "fresh" for word in words.values()),
            per_minute=network.requests_per_minute,
            limit=network.request_limit,
            reachable={
                True: ("good", "reachable"),
                False: ("bad", "does not answer"),
                None: ("none", "no request yet"),
            }[network.telemetry.reachable],
            token_state=verdict.token_state(freshness[UP]),
            token_end=end,
            token_expiry=None if end is None else verdict.expiry_text(end, now),
            token_read=freshness[ACCESS_TOKENS.name].last_success
            if is_refused and end is not None
            else None,
            uptime=context.uptime(),
            samples=samples,
            chart=chart(samples, now - started_at),
            resources=[*_resources(freshness, words)],
            causes=[*_causes(freshness, words, now)],
            note=network.intervals_note,
            notes=[*_notes(words, network)],
            collectors=network.collectors,
            series=network.pages.series(),
            lengths=network.pages.lengths(),
            requests=[*_requests(network)],
        )

    def _accounts(self, known: Accounts) -> str:
        now = self.now()
        rows = [
            _account_row(network, now)
            for name, network in self.networks.items()
            if name in known
        ]
        order = verdict.WORST_FIRST.index
        rows.sort(
            key=lambda row: (
                _UNREAD.index(row.reading.tone)
                if row.reading.tone in _UNREAD
                else len(_UNREAD),
                order(row.verdict.tone),
                row.name,
            )
        )
        readings = [row.reading for row in rows]
        working = sum(one.tone in verdict.WORKING for one in readings)
        tone, heading = verdict.summary(readings)
        worst = verdict.worst([row.verdict for row in rows]) if rows else tone
        title = f"{working} of {len(rows)}"
        return self.html("accounts", title, tone=worst, heading=heading, rows=rows)


_UNREAD: Sequence[Tone] = ("bad", "none")
"""The tones of accounts whose peers are not read."""


class _AccountRow(NamedTuple):
    """An account; its verdict is the worse of both."""

    name: str
    reading: Verdict
    verdict: Verdict
    peers: Sequence[Peer] | None
    counts: str | None
    what: str


def _account_row(network: AccountNetwork, now: float) -> _AccountRow:
    freshness, inventory = network.states, network.inventory
    found = network.attention.found
    reading = verdict.reading_verdict(freshness, inventory, now)
    of_network = verdict.network_verdict(found, freshness[UP])
    is_worse = reading.tone in verdict.WORKING and of_network.tone in {"bad", "warn"}
    started_at = network.attention.last.started_at
    worst = lines.newest_of_the_worst(found, started_at, now) if is_worse else None
    return _AccountRow(
        network.account,
        reading,
        min(
            (reading, of_network) if is_worse else (reading,),
            key=lambda one: verdict.WORST_FIRST.index(one.tone),
        ),
        inventory.peers,
        lines.counts_text(found),
        lines.headline(worst) if worst else reading.why or reading.headline,
    )


def _offline_machines(inventory: Inventory, now: float) -> Iterator[tuple[str, float]]:
    """Yield the names of offline machines that PEER_DETAIL allows, and for how long.

    A machine is a peer without a login, which should be connected. The newest is first.
    """
    offline = [
        (peer.last_seen.timestamp() if peer.last_seen else 0.0, peer.name or peer.id)
        for peer in inventory.detailed_peers()
        if not peer.connected and not peer.user_id and not peer.ephemeral
    ]
    for last_seen, name in sorted(offline, reverse=True):
        yield safe_line(name), max(0.0, now - last_seen) if last_seen else 0.0


class _ResourceRow(NamedTuple):
    resource: Resource[Any]
    known: ResourceState
    word: StateWord


def _resources(
    freshness: Mapping[str, ResourceState], words: Mapping[str, StateWord]
) -> Iterator[_ResourceRow]:
    """Yield a row of each requested resource."""
    for name, resource in RESOURCE_BY_NAME.items():
        if (known := freshness.get(name)) is None:
            continue
        if name == CURRENT_USER and words[name] == "unsupported":
            continue  # the token of a service user, which reads everything
        yield _ResourceRow(resource, known, words[name])


class _Cause(NamedTuple):
    """Resources that fail for one reason; `since` is when the first began to fail."""

    names: str
    error: str
    since: float
    advice: str


def _causes(
    freshness: Mapping[str, ResourceState], words: Mapping[str, StateWord], now: float
) -> Iterator[_Cause]:
    """Yield the causes of failing resources. The headline advises about the peers."""
    peers = freshness[UP]
    advised = set() if peers.error is None else {advice(peers.error)}
    failing: dict[str, list[str]] = {}
    for name, known in freshness.items():
        if known.error is not None and words[name] == "failing":
            failing.setdefault(str(known.error), []).append(name)
    for names in failing.values():
        error = freshness[names[0]].error
        assert error is not None
        steps = advice(error, token_accepted=peers.up is True)
        shown = "" if steps in advised else steps
        advised.add(steps)
        since = min(freshness[name].failing_since or now for name in names)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        listed = f"{', '.join(names[:3])}{more}"
        yield _Cause(listed, error.text_with_request_id, since, shown)


def _notes(
    words: Mapping[str, StateWord], network: AccountNetwork
) -> Iterator[tuple[str, str]]:
    """Yield words of the table and what they mean."""
    freshness = network.states
    shown = {word for name, word in words.items() if name in freshness}
    for state, text in verdict.STATE_MEANINGS.items():
        if state in shown:
            yield state, f": {text}."
    dormant = [name for name, word in words.items() if word == "dormant"]
    off = [name for name in RESOURCE_BY_NAME if name not in words]
    for word, text, names in (
        ("dormant", "NetBird lists no Agent Network provider", dormant),
        ("off", "the settings leave out this resource", off),
    ):
        if names:
            yield word, f" ({text}): {', '.join(names)}."
    unknown = {name: one.unknown.names() for name, one in freshness.items()}
    if listed := [f"{name}: {', '.join(n)}" for name, n in unknown.items() if n]:
        text = " (a newer api-exporter may use these fields and values): "
        yield "unknown", f"{text}{'; '.join(listed)}."


def _requests(network: AccountNetwork) -> Iterator[tuple[Attempt, Tone, str]]:
    """Yield the newest requests first. An error is not repeated."""
    shown = ""
    for attempt in reversed(network.telemetry.recent):
        problem = attempt.error
        tone: Tone = "bad" if problem else "good"
        if attempt.path == PROBE_PATH and attempt.status is not None:
            tone, problem = "none", "Connection test: any response is good."
        yield attempt, tone, "" if problem == shown else problem
        shown = problem


ABOUT: Mapping[str, Callable[[Finding], bool]] = {
    "": lambda _: True,
    "network": lambda one: one.object_type == "network",
    "route": lambda one: one.object_type == "route",
    "expiry": lambda one: one.until is not None,
}
"""Which findings a page has, by the parameter `about`."""


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
        found = [*filter(ABOUT[about], network.attention.found.lines)]
        last = max(1, -(-len(found) // FINDINGS_PER_PAGE))
        number = request.args.get(b"page", [b""])[0]
        requested = int(number) if number.isdigit() and len(number) < 6 else 1
        page = min(max(1, requested), last)
        return self.cache.get(
            (network, about, page), lambda: self._page(network, about, found, page)
        )

    def _page(
        self, network: AccountNetwork, about: str, lines: Sequence[Finding], number: int
    ) -> str:
        found, freshness = network.attention.found, network.states
        state = verdict.network_verdict(found, freshness[UP])
        begin = (number - 1) * FINDINGS_PER_PAGE
        listed = lines[begin : begin + FINDINGS_PER_PAGE]
        total = len(lines)
        return self.html(
            "findings",
            f"{state.short} – findings",
            network.account,
            tone=state.tone,
            started_at=network.attention.last.started_at,
            read_at=freshness[UP].last_success,
            verdict=state,
            reading=verdict.reading_verdict(freshness, network.inventory, self.now()),
            found=found,
            listed=listed,
            number_=number,
            last=max(1, -(-len(lines) // FINDINGS_PER_PAGE)),
            about=about,
            range=f"{begin + 1:,} to {begin + len(listed):,} of {total:,}",
        )

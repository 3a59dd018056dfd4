"""The status page's tables: the state of each resource, and the newest requests.

On a narrow screen a row becomes several lines, and each cell has its own label.
"""

from collections.abc import Collection, Mapping, Reversible, Sequence
from typing import Any

from twisted.web.template import Flattenable, Tag, tags

from api_exporter.collectors.collector import Collector
from api_exporter.netbird.resources import CURRENT_USER, PROBE_PATH, UP, Resource
from api_exporter.ports import Attempt, UpstreamError
from api_exporter.subjects.table import RESOURCE_BY_NAME
from api_exporter.telemetry.freshness import Freshness
from api_exporter.upstream.advice import advice
from api_exporter.web.status import formatting
from api_exporter.web.status.verdict import Tone, state_words

_TONES: dict[str, Tone] = {
    "fresh": "good",
    "late": "warn",
    "failing": "bad",
    "expired": "bad",
}

_LEGEND = {
    "starting": "no refresh yet: the exporter reads the resources one after another",
    "late": "overdue: older than 1.5 intervals",
    "expired": "no refresh for so long that the metrics have expired",
    "waiting": "no refresh while the refresh of the peers fails",
    "unsupported": "the NetBird API does not offer this resource to this token, or"
    " lists no object that needs it; next attempt within an hour",
    "restricted": "the token's user may read only a part, so the exporter publishes"
    " none of it; see the finding",
}

_NUMBERS = ("Last success", "Every", "Records", "Milliseconds")


def resources(
    freshness: Mapping[str, Freshness],
    dormant: Collection[str],
    now: float,
    note: str = "",
) -> Tag:
    """Return rows of refreshed resources, a note, and a line of other resources.

    The advice for the peers is not repeated: the headline has it.
    """
    rows: list[Tag] = []
    states: set[str] = set()
    peers, words = freshness[UP], state_words(freshness, now)
    advised = set() if peers.error is None else {advice(peers.error)}
    for resource in RESOURCE_BY_NAME.values():
        if (known := freshness.get(resource.name)) is None:
            continue
        word = words[resource.name]
        if resource.name == CURRENT_USER and word == "unsupported":
            continue  # the token of a service user, which reads everything
        states.add(word)
        rows.append(_row(resource, known, word, now))
        if known.error is not None and word == "failing":
            steps = advice(known.error, token_accepted=peers.up is True)
            rows.append(
                _failure(known, known.error, "" if steps in advised else steps, now)
            )
            advised.add(steps)
    legend = [
        tags.span(tags.b(word), f": {text}. ")
        for word, text in _LEGEND.items()
        if word in states
    ]
    for word, text, names in (
        ("dormant", "NetBird lists no Agent Network provider", dormant),
        (
            "off",
            "the settings leave out this resource",
            [n for n in RESOURCE_BY_NAME if n not in freshness and n not in dormant],
        ),
    ):
        if names:
            legend.append(tags.span(tags.b(word), f" ({text}): {', '.join(names)}. "))
    unknown = {name: one.unknown.names() for name, one in freshness.items()}
    if names := [f"{name}: {', '.join(n)}" for name, n in unknown.items() if n]:
        text = " (a newer api-exporter may use these fields and values): "
        legend.append(tags.span(tags.b("unknown"), text, "; ".join(names), "."))
    return tags.section(
        tags.h2("Resources"),
        _table("Resources", ("Resource", "State", *_NUMBERS), rows),
        tags.p(f"{note[0].upper()}{note[1:]}.") if note else "",
        tags.p(legend, class_="legend") if legend else "",
    )


def _row(resource: Resource[Any], freshness: Freshness, word: str, now: float) -> Tag:
    name = tags.td(
        tags.span(resource.name, title=f"/{resource.path}"),
        class_="lead",
        role="rowheader",
    )
    mark = tags.td(state_mark(_TONES.get(word, "none"), word), class_="mark")
    success, ended = freshness.last_success, freshness.ended_at
    read = success is not None
    return tags.tr(
        name,
        mark,
        _number(None if success is None else formatting.ago(success, now)),
        _number(formatting.short_duration(freshness.period), before="every"),
        _number(_records(freshness) if read else None, after="records"),
        _number(
            None if ended is None else formatting.milliseconds(freshness.seconds),
            after="ms",
        ),
    )


def _failure(freshness: Freshness, error: UpstreamError, steps: str, now: float) -> Tag:
    """Return the row of an error and of what to do about it."""
    since = formatting.clock_time(freshness.failing_since or now, now)
    return _problem_row(
        len(_NUMBERS) + 2, f"Since {since}: {error.text_with_request_id}", steps
    )


def _records(freshness: Freshness) -> Flattenable:
    shown = f"{freshness.records:,}"
    if not freshness.rejected:
        return shown
    left_out = f"{freshness.rejected:,} left out, "
    return [
        tags.span(
            left_out,
            title="The exporter could not decode these records",
            class_="concern",
        ),
        shown,
    ]


def collectors(
    enabled: Sequence[Collector], series: Mapping[str, int], lengths: Mapping[str, int]
) -> Tag:
    """Return a row for each collector with its part of the metrics page."""
    rows = [
        tags.tr(
            tags.td(collector.name, class_="lead", role="rowheader"),
            tags.td(", ".join(collector.reads)),
            _number(f"{series[collector.name]:,}", after="series"),
            _number(f"{lengths[collector.name]:,}", after="bytes"),
        )
        for collector in enabled
    ]
    heads = ("Collector", "Reads", "Series", "Bytes")
    return tags.section(
        tags.h2("Collectors"),
        _table("Collectors", heads, rows)
        if rows
        else tags.p("No collector is enabled.", class_="legend"),
    )


def newest_requests(recent: Reversible[Attempt]) -> Tag:
    """Return the newest requests to the NetBird API, the newest first."""
    rows: list[Tag] = []
    shown_problem = ""
    for attempt in reversed(recent):
        status = "no response" if attempt.status is None else str(attempt.status)
        problem = attempt.error
        tone: Tone = "bad" if problem else "good"
        if attempt.path == PROBE_PATH and attempt.status is not None:
            tone, problem = "none", "Connection test: any response is good."
        rows.append(
            tags.tr(
                tags.td(f"/{attempt.path}", class_="lead path", role="rowheader"),
                tags.td(state_mark(tone, status), class_="mark"),
                _number(formatting.time_of_day(attempt.started)),
                _number(f"{attempt.received:,}", after="bytes"),
                _number(formatting.milliseconds(attempt.seconds), after="ms"),
                _number(str(attempt.number), before="attempt"),
            )
        )
        if problem not in {"", shown_problem}:
            rows.append(_problem_row(6, problem, tone=tone))
        shown_problem = problem
    heads = ("Path", "Status", "Time (UTC)", "Bytes", "Milliseconds", "Attempt")
    return tags.section(
        tags.h2("Newest requests to the NetBird API"),
        _table("Newest requests", heads, rows)
        if rows
        else tags.p("None yet.", class_="legend"),
    )


def _table(label: str, heads: Sequence[str], rows: list[Tag]) -> Tag:
    return tags.div(
        tags.table(
            tags.thead(
                tags.tr(
                    [
                        tags.th(head, scope="col", class_="n" if column > 1 else "w")
                        for column, head in enumerate(heads)
                    ]
                )
            ),
            tags.tbody(*rows),
            **{"aria-label": label},
        ),
        class_="box",
    )


def _number(
    shown: Flattenable | None = None, *, before: str = "", after: str = ""
) -> Tag:
    """Return a cell; on a narrow screen, without heads, it has words around it."""
    if shown is None:
        return tags.td(formatting.MISSING, class_="n void")
    cell = tags.td(shown, class_="n")
    if before:
        cell(**{"data-before": before})
    if after:
        cell(**{"data-after": after})
    return cell


def _problem_row(columns: int, problem: str, more: str = "", tone: Tone = "bad") -> Tag:
    return tags.tr(
        tags.td(tags.strong(problem, class_=tone), more, colspan=str(columns)),
        class_="because",
    )


def state_mark(tone: Tone, word: str) -> Tag:
    return tags.span(word, class_=f"state {tone}")

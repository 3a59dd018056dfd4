"""The company's Agent Network and invites, which change within the hour."""

from collections.abc import Iterable, Iterator

from api_exporter.demo.go_json import Record, rfc3339, xid
from simulation.company.incidents import (
    GUARDRAIL_DELETED,
    NO_VERIFICATION,
    PROMPTS_KEPT,
    PROVIDER_OFF,
)
from simulation.company.people import person
from simulation.company.resource import Moment, Template
from simulation.company.schedules import DAY, HOUR, MINUTE

ENGINEERING = "d2g00000000000000005"
CORE = "d2g00000000000000006"
SALES = "d2g00000000000000007"

_SPENDERS = (
    # The kind, the id, the seconds of the window, and the tokens used a minute.
    ("group", CORE, HOUR, 2_400),
    ("group", ENGINEERING, DAY, 1_100),
    ("group", SALES, DAY, 120),
    ("user", person(0).id, DAY, 330),
    ("user", person(3).id, DAY, 90),
    ("user", person(0).id, 30 * DAY, 330),
    ("user", person(3).id, 30 * DAY, 90),
)

_TOKEN_USD = 0.000006
"""The price of a token in USD."""


def providers(moment: Moment, template: Template) -> Iterable[Record]:
    own = template.records[2]
    own["skip_tls_verification"] = NO_VERIFICATION.is_active(moment.at)
    own["enabled"] = not PROVIDER_OFF.is_active(moment.at)
    return template.records


def guardrails(moment: Moment, template: Template) -> Iterable[Record]:
    """Return both guardrails, or one while the other is deleted by mistake."""
    gone = GUARDRAIL_DELETED.is_active(moment.at)
    return template.records[:1] if gone else template.records


def settings(moment: Moment, template: Template) -> Record:
    kept = PROMPTS_KEPT.is_active(moment.at)
    return template.template | {"enable_prompt_collection": kept}


def consumption(moment: Moment, template: Template) -> Iterator[Record]:
    """Yield the usage in the current window of each, and in the three before it."""
    for kind, id_, length, rate in _SPENDERS:
        for back in range(4):
            begin = moment.latest(length) - back * length
            end = min(int(moment.at), begin + length - 1)
            tokens = rate * (end - begin) // MINUTE
            yield template.record(
                dimension_kind=kind,
                dimension_id=id_,
                window_seconds=length,
                window_start_utc=rfc3339(begin),
                updated_at=rfc3339(end, ".5"),
                tokens_input=tokens * 4 // 5,
                tokens_output=tokens - tokens * 4 // 5,
                cost_usd=tokens * _TOKEN_USD,
            )


def usage(moment: Moment, template: Template) -> Iterator[Record]:
    """Yield a bucket for each requested day, except Sundays."""
    today = moment.latest(DAY)
    first = today - (int(rfc3339(today)[8:10]) - 1) * DAY
    earlier = "end_date=" in moment.query
    for begin in range(first, today, DAY) if earlier else (today,):
        if begin // DAY % 7 == 3:
            continue
        minutes = (min(int(moment.at), begin + DAY) - begin) // MINUTE
        yield template.record(
            period_start=rfc3339(begin)[:10],
            input_tokens=1_000 * minutes,
            output_tokens=250 * minutes,
            total_tokens=1_250 * minutes,
            cached_input_tokens=400 * minutes,
            cache_creation_tokens=20 * minutes,
            input_cost_usd=0.0025 * minutes,
            output_cost_usd=0.00375 * minutes,
            cached_input_cost_usd=0.0001 * minutes,
            cache_creation_cost_usd=0.000075 * minutes,
            cache_cost_usd=0.000175 * minutes,
            cost_usd=0.006425 * minutes,
        )


def denials(moment: Moment, template: Template) -> Record:
    """Return the newest denial, of which there are five an hour from minute 42 on. They
    come every four minutes, because R&D has used all its tokens.
    """
    today = moment.latest(DAY)
    hours, rest = divmod(int(moment.at) - today, HOUR)
    number = 5 * hours + max(0, (rest - 42 * MINUTE) // (4 * MINUTE) + 1)
    page = template.template
    row = page["data"][0] | {"timestamp": rfc3339(int(moment.at) // 240 * 240)}
    return page | {
        "data": [row] if number else [],
        "total_records": number,
        "total_pages": number,
    }


def invites(moment: Moment, template: Template) -> Iterable[Record]:
    """Return two invites. Every hour, a new second one is valid for 50 minutes."""
    made = moment.latest(HOUR)
    lasting, short = template.records
    lasting["created_at"] = rfc3339(moment.latest(DAY))
    lasting["expires_at"] = rfc3339(moment.latest(DAY) + 3 * DAY)
    short["id"] = xid("d2v", made)
    short["created_at"], short["expires_at"] = rfc3339(made), rfc3339(made + 3_000)
    short["expired"] = moment.at >= made + 3_000
    return template.records

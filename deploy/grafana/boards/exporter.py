"""Exporter: whether it reads all resources in time, and what it costs."""

from deploy.grafana.board import board
from deploy.grafana.panels import (
    BACKGROUND,
    SOON,
    UNKNOWN,
    Column,
    Json,
    behind,
    fold,
    large,
    lines,
    look,
    stat,
    table,
    timeline,
)
from deploy.grafana.queries import (
    PROCESS,
    RESOURCE_AGE,
    TARGET,
    any_of,
    label,
    of,
    one,
    or_zero,
    supported,
    total,
)

_READ = {1: ("read", "green"), 0: ("failed", "red")}

_LATE = {None: "none", 2: "orange", 3: "red"}
"""From three intervals on, an alert fires."""

_UP = of("api_exporter_resource_up")


def _by_resource(expression: str) -> str:
    return one(supported(expression), "resource")


def _headline() -> list[Json]:
    count = look("none", colour="text", empty=UNKNOWN)
    requests = of("api_exporter_upstream_requests_total")
    failing = f"count({_by_resource(_UP)} == 0)"
    silent = of("up", 'account!=""')
    every = any_of(of("netbird_api_up"), f"{silent} == 0")
    expires = of("api_exporter_access_token_expiration_timestamp_seconds")
    return [
        stat(
            "Exporter",
            (0, 0, 8, 3),
            "Whether all exporters answer.",
            {"": f"min({of('up')}) or vector(0)"},
            look(words={1: ("up", "green"), 0: ("down", "red")}),
            solid=True,
        ),
        stat(
            "Accounts read",
            (8, 0, 8, 3),
            "Accounts whose peers an exporter can read, of all.",
            {"read": total(of("netbird_api_up")), "of": f"count({one(every)})"},
            count,
            size=24,
        ),
        stat(
            "Failing resources",
            (16, 0, 8, 3),
            "Resources that no exporter of the account could read at the last attempt.",
            {"": or_zero(failing, of("netbird_api_up"))},
            look("none", limits={None: "text", 1: "red"}, empty=UNKNOWN),
        ),
        stat(
            "Oldest resource",
            (0, 3, 8, 3),
            "The age of the oldest resource in its own intervals. Up to 1 is usual.",
            {"": f"max({_by_resource_oldest()})"},
            look("suffix: ×", decimals=1, limits=large(_LATE), empty=UNKNOWN),
        ),
        stat(
            "Requests a minute",
            (8, 3, 8, 3),
            "Requests of the busiest account to the NetBird API, and how many the"
            " exporter allows itself, if a limit is known.",
            {
                "sent": f"60 * max(sum by ({TARGET}) (rate({requests}[10m])))",
                "allowed": f"min({of('api_exporter_request_budget_per_minute')})",
            },
            look("none", decimals=1, colour="text", empty=UNKNOWN),
            size=24,
        ),
        stat(
            "Own token",
            (16, 3, 8, 3),
            "Days until the first of the exporters' own access tokens expires.",
            {"": f"(min({expires}) - time()) / 86400"},
            look("suffix: days", decimals=0, limits=large(SOON), empty="not known"),
        ),
    ]


def _by_resource_oldest() -> str:
    """Return each resource's age in intervals, of the exporter that read it last."""
    return f"min by (cluster, account, resource) ({supported(RESOURCE_AGE)})"


def _failures() -> list[Json]:
    api = label(one(of("netbird_api_up")), "resource", "NetBird API")
    answered = f"{_UP} and on ({TARGET}) {of('netbird_api_up')} == 1"
    reasons = of("api_exporter_refresh_failure_reasons_total")
    return [
        timeline(
            "What failed, and when",
            (0, 6, 14, 6),
            "The API of each account, and each resource that failed while the API"
            " answered. A gap: no exporter answered.",
            {"{{resource}} {{account}}": any_of(api, f"{_by_resource(answered)} == 0")},
            _READ,
            empty="No exporter answered",
        ),
        lines(
            "Failures in 10 minutes, by reason",
            (14, 6, 10, 6),
            "Failed refreshes of all exporters.",
            {"{{reason}}": f"sum by (reason) (increase({reasons}[10m])) > 0"},
            steps=True,
            stacked=True,
            decimals=0,
            shades="red",
            empty="No failure is known",
        ),
    ]


def _resources() -> Json:
    interval = of("api_exporter_resource_refresh_interval_seconds")
    success = of("api_exporter_resource_last_success_timestamp_seconds")
    known = f"and on ({TARGET}, resource) {_UP}"
    words = {1: ("read", "none"), 0: ("failed", "red")}
    return table(
        "Resources, the failing and the oldest first",
        (0, 12, 24, 10),
        "Resources that NetBird does not offer are left out.",
        [
            _by_resource(_UP),
            _by_resource_oldest(),
            f"time() - {_by_resource(success)}",
            _by_resource(f"{interval} {known}"),
            _by_resource(f"{of('api_exporter_resource_records')} {known}"),
            _by_resource(f"{of('api_exporter_resource_rejected_records')} {known}"),
            _by_resource(f"{of('api_exporter_unknown_fields')} {known}"),
        ],
        [
            Column("resource", "Resource", look(minWidth=170)),
            Column(
                "Value #A",
                "State",
                look(words=words, cellOptions=BACKGROUND, align="left"),
            ),
            Column(
                "Value #B",
                "Age in intervals",
                behind(_LATE, "suffix: ×", 1, minWidth=145),
            ),
            Column("Value #C", "Age", look("s", decimals=0)),
            Column("Value #D", "Interval", look("s", decimals=0)),
            Column("Value #E", "Records"),
            Column("Value #F", "Rejected"),
            Column("Value #G", "Unknown fields", look(minWidth=125)),
        ],
        sort={"State": False, "Age in intervals": True},
        empty="No exporter answers",
    )


def _requests() -> list[Json]:
    requests = of("api_exporter_upstream_requests_total")
    buckets = of("api_exporter_upstream_request_duration_seconds_bucket")
    durations = f"rate({buckets}[10m])"
    return [
        lines(
            "Requests to the NetBird API, a minute",
            (0, 22, 12, 8),
            "Requests of all exporters by HTTP status (none = no response), over ten"
            " minutes.",
            {"{{code}}": f"60 * sum by (code) (rate({requests}[10m]))"},
            colours={"^2": "blue", "^4": "orange", "^(5|none|other)": "red"},
            stacked=True,
        ),
        lines(
            "Duration of a request",
            (12, 22, 12, 8),
            "Requests to the NetBird API with their bodies, over ten minutes.",
            {
                name: f"histogram_quantile({share}, sum by (le) ({durations}))"
                for share, name in ((0.95, "95 %"), (0.5, "median"))
            },
            "s",
            colours={"95": "orange", "median": "blue"},
        ),
    ]


def _process() -> Json:
    def by_process(metric: str) -> str:
        return f"{metric}{{{PROCESS}}}"

    lag = by_process("api_exporter_reactor_lag_seconds_bucket")
    cpu = by_process("process_cpu_seconds_total")
    instance = "{{instance}}"
    return fold(
        "The process",
        30,
        lines(
            "Memory",
            (0, 31, 8, 8),
            "Resident memory.",
            {instance: by_process("process_resident_memory_bytes")},
            "bytes",
        ),
        lines(
            "Processor",
            (8, 31, 8, 8),
            "Processor time a second.",
            {instance: f"rate({cpu}[$__rate_interval])"},
            "percentunit",
        ),
        lines(
            "Lag of the event loop",
            (16, 31, 8, 8),
            "Delay of a timer.",
            {
                name: f"histogram_quantile({share}, sum by (le) (rate({lag}[10m])))"
                for share, name in ((0.99, "99 %"), (0.5, "median"))
            },
            "s",
            colours={"99": "orange", "median": "blue"},
        ),
        lines(
            "Duration of a scrape",
            (0, 39, 12, 8),
            "As Prometheus measures it.",
            {f"{instance} {{{{account}}}}": of("scrape_duration_seconds")},
            "s",
        ),
        lines(
            "Access log behind",
            (12, 39, 12, 8),
            "The age of the rows that are read, while reading is behind.",
            {f"{instance} {{{{account}}}}": of("api_exporter_access_log_lag_seconds")},
            "s",
            empty="No access log is read",
        ),
    )


def made() -> str:
    return board(
        "exporter",
        "Exporter",
        "State of the exporter and of its requests to the NetBird API.",
        [*_headline(), *_failures(), _resources(), *_requests(), _process()],
    )

"""Reverse proxy: the services, from NetBird's access log."""

from deploy.grafana.board import board, many
from deploy.grafana.panels import Column, behind, large, lines, look, stat, table
from deploy.grafana.queries import of, one, rate

_CHOSEN = ('proxy_service=~"$service"',)

_REQUESTS = "api_exporter_access_log_requests_total"

_ID = ("proxy_service_id", "proxy_service")

_SERVICE = f"by (cluster, account, {', '.join(_ID)}) "

_ENOUGH = 20
"""Requests in ten minutes below which a share is chance."""

_SHARES = {None: "none", 0.01: "orange", 0.05: "red"}


def _counted(metric: str, *by: str, only: str = "") -> str:
    matchers = ('proxy_service=~"$service"', *([only] if only else []))
    return rate(metric, "10m", *by, matchers=matchers)


def _errors(group: str = "") -> str:
    """Return the share of requests with a status of 500 or more, if they are enough."""
    failed = _counted(_REQUESTS, *_ID, only='code="5xx"')
    everything = _counted(_REQUESTS, *_ID, only='protocol="http"')
    enough = f"(sum {group}({everything}) > {_ENOUGH} / 600)"
    return f"(sum {group}({failed}) or 0 * {enough}) / {enough}"


def _slowest(group: str = "by (le)") -> str:
    buckets = "api_exporter_access_log_request_duration_seconds_bucket"
    counted = f"sum {group} ({_counted(buckets, 'le', *_ID)})"
    # Without requests it is NaN, which compares with nothing.
    return f"histogram_quantile(0.95, {counted}) >= 0"


def made() -> str:
    denied = "api_exporter_access_log_denied_total"
    received = "api_exporter_access_log_bytes_total"
    slowest = _slowest(_SERVICE.replace(")", ", le)"))
    status = of("netbird_api_proxy_service_status", *_CHOSEN)
    certificate = of(
        "netbird_api_proxy_service_certificate_issued_timestamp_seconds", *_CHOSEN
    )
    a_minute = look("suffix: / min", decimals=1)
    some = a_minute | look(colour="text", empty="none known")
    return board(
        "proxy",
        "Reverse proxy",
        "Requests, errors and durations of proxied services, from the access log.",
        [
            stat(
                "Requests",
                (0, 0, 6, 4),
                "Requests and connections a minute, over ten minutes.",
                {"": f"60 * sum({_counted(_REQUESTS)})"},
                some,
                size=30,
            ),
            stat(
                "Errors",
                (6, 0, 6, 4),
                "The share of HTTP requests with a status of 500 or more, over ten"
                f" minutes. Not below {_ENOUGH} requests.",
                {"": _errors()},
                look("percentunit", decimals=1, limits=large(_SHARES), empty="unknown"),
                size=30,
            ),
            stat(
                "Duration, 95 %",
                (12, 0, 6, 4),
                "95 of 100 HTTP requests take at most this long, over ten minutes.",
                {"": _slowest()},
                look("s", colour="text", empty="none known"),
                size=30,
            ),
            stat(
                "Refused",
                (18, 0, 6, 4),
                "Requests and connections refused a minute, over ten minutes.",
                {"": f"60 * sum({_counted(denied)})"},
                some,
                size=30,
            ),
            table(
                "Services, the most errors first",
                (0, 4, 24, 9),
                "Over ten minutes. After an outage of the API, the rows of its time"
                " count at once.",
                [
                    f"60 * {_counted(_REQUESTS, *_ID)}",
                    _errors(_SERVICE),
                    slowest,
                    f"60 * {_counted(denied, *_ID)}",
                    _counted(received, *_ID),
                    f"time() - {one(certificate, *_ID)}",
                    one(f"{status} == 1", *_ID, "status"),
                ],
                [
                    Column("proxy_service", "Service", look(minWidth=160)),
                    Column("status", "Status", look(minWidth=160)),
                    Column("Value #A", "Requests", a_minute | look(minWidth=100)),
                    Column("Value #B", "Errors", behind(_SHARES, "percentunit", 1)),
                    Column("Value #C", "Duration, 95 %", look("s", minWidth=125)),
                    Column("Value #D", "Refused", a_minute),
                    Column("Value #E", "Traffic", look("Bps", decimals=1)),
                    Column(
                        "Value #F",
                        "Certificate age",
                        look("s", decimals=0, minWidth=130),
                    ),
                    Column("Value #G", "known", look(hidden=True)),
                    Column("proxy_service_id", "id", look(hidden=True)),
                ],
                sort={"Errors": True, "Requests": True},
                empty="No service is known. For requests see docs/logs.md",
            ),
            lines(
                "Requests a minute, by status",
                (0, 13, 24, 8),
                "Requests and connections, over ten minutes.",
                {"{{code}}": f"60 * sum by (code) ({_counted(_REQUESTS, 'code')})"},
                colours={"^[123]": "blue", "^4": "orange", "^5": "red"},
                stacked=True,
            ),
            lines(
                "Errors by service",
                (0, 21, 12, 8),
                "The share of HTTP requests with a status of 500 or more, over ten"
                f" minutes. Not below {_ENOUGH} requests.",
                {"{{proxy_service}} {{account}}": _errors(_SERVICE)},
                "percentunit",
                empty="Too few requests are known",
            ),
            lines(
                "Duration by service, 95 %",
                (12, 21, 12, 8),
                "95 of 100 HTTP requests take at most this long, over ten minutes.",
                {"{{proxy_service}} {{account}}": slowest},
                "s",
                empty="No requests are known",
            ),
        ],
        variables=[
            many(
                "service",
                "Service",
                f"label_values({of(_REQUESTS)}, proxy_service)",
                allValue=".*",
            )
        ],
    )

"""A board: panels under variables, marks and links that all boards share."""

from collections.abc import Sequence

from deploy.grafana.panels import SOURCE, Json
from deploy.grafana.queries import PROCESS, TARGET, of
from tools.json_text import json_text

_EXPORTERS = '__name__=~"api_exporter_build_info|netbird_api_(up|peers)"'


def variable(name: str, title: str, query: str, **more: object) -> Json:
    """Return a choice of values that Prometheus knows."""
    return {
        "name": name,
        "label": title,
        "type": "query",
        "datasource": SOURCE,
        "query": query,
        "refresh": 2,
        "sort": 1,
        **more,
    }


def many(name: str, title: str, query: str, **more: object) -> Json:
    """Return a choice of which all are taken at first."""
    chosen = {"text": "All", "value": "$__all"}
    return variable(
        name, title, query, includeAll=True, multi=True, current=chosen, **more
    )


_VARIABLES = [
    {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    },
    # All clusters and accounts include targets without such a label. All jobs and
    # instances do not: other programs have those labels, too.
    many(
        "account",
        "Account",
        'label_values(netbird_api_up{cluster=~"$cluster"}, account)',
        allValue=".*",
    ),
    many(
        "instance",
        "Instance",
        f'label_values({{{_EXPORTERS}, cluster=~"$cluster"}}, instance)',
    ),
    many(
        "cluster", "Cluster", f"label_values({{{_EXPORTERS}}}, cluster)", allValue=".*"
    ),
    many("job", "Job", f'label_values({{{_EXPORTERS}, cluster=~"$cluster"}}, job)'),
]


def _mark(title: str, colour: str, expression: str, **more: object) -> Json:
    return {
        "name": title,
        "datasource": SOURCE,
        "enable": True,
        "expr": expression,
        "iconColor": colour,
        "titleFormat": title,
        "textFormat": "{{instance}} {{account}} {{setting}} {{version}}",
        **more,
    }


_START = {"useValueForTime": "on"}

_VERSION = of("netbird_api_management_info")

_SERVER = (
    '{__name__=~"management_grpc_connected_streams(_ratio)?", cluster=~"$cluster"}'
)

MARKS = [
    _mark(
        "Exporter started",
        "blue",
        f"process_start_time_seconds{{{PROCESS}}} * 1000\n"
        f"  and on ({TARGET}) api_exporter_build_info{{{PROCESS}}}",
        **_START,
    ),
    _mark(
        "Management server started",
        "orange",
        'process_start_time_seconds{cluster=~"$cluster"} * 1000\n'
        f"  and on ({TARGET}) {_SERVER}",
        **_START,
    ),
    _mark(
        "Management server updated",
        "purple",
        f"{_VERSION} unless on ({TARGET}, version) {_VERSION} offset 10m\n"
        f"  and on ({TARGET}) {_VERSION} offset 10m",
    ),
    _mark(
        "Setting changed",
        "purple",
        f"changes({of('netbird_api_account_setting_enabled')}[$__rate_interval]) > 0",
    ),
]

OTHERS = {
    "type": "dashboards",
    "title": "NetBird",
    "tags": ["api-exporter"],
    "asDropdown": True,
    "keepTime": True,
    "includeVars": True,
}
"""A list of all these boards."""

KEPT = "${__all_variables}&${__url_time_range}"
"""Variables and time, which a link to another board keeps."""


def board(
    uid: str,
    title: str,
    meaning: str,
    panels: Sequence[Json],
    *,
    variables: Sequence[Json] = (),
    marks: Sequence[Json] = tuple(MARKS),
) -> str:
    """Return a board as JSON."""
    every = [p for one in panels for p in (one, *one.get("panels", ()))]
    for number, panel in enumerate(every, 1):
        panel["id"] = number
    made = {
        "uid": f"netbird-{uid}",
        "title": f"NetBird / {title}",
        "description": meaning,
        "tags": ["netbird", "api-exporter"],
        "schemaVersion": 39,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "links": [OTHERS],
        "annotations": {"list": [*marks]},
        "templating": {"list": [*_VARIABLES, *variables]},
        "panels": [*panels],
    }
    return json_text(made) + "\n"

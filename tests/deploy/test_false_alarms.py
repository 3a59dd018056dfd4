"""A quiet network: what cannot be read gives alerts that say so, and no others."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Set
from itertools import combinations, groupby

from prometheus_client import CollectorRegistry, generate_latest
from twisted.internet.task import Clock
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.rules import RULE_FILES, rules
from api_exporter.attention.thresholds import with_changes
from api_exporter.events.wiring import LogFactory
from api_exporter.netbird.resources import ACCESS_LOG, CURRENT_USER
from api_exporter.ports import Reason, ResponseBody, UpstreamError
from api_exporter.refresh.compute import compute_at_once
from api_exporter.refresh.network import AccountNetwork, NetworkOptions
from api_exporter.refresh.quotas import quotas
from api_exporter.settings.environment import read_settings
from api_exporter.subjects.table import RESOURCE_BY_NAME
from api_exporter.world import World
from simulation.company.network import PATHS, SimulatedNetwork
from simulation.company.people import EXPORTER_ID
from tests.bodies import body
from tests.deploy.programs import new_folder, run
from tests.events import START as LOG_START
from tests.events.paging import Table
from tests.integration.programs import program
from tests.weather import START, events_until

STEP = 5
"""Minutes between two scrapes."""

ERRORS: tuple[tuple[int, int, Reason], ...] = (
    (0, 31, "http_5xx"),
    (70, 110, "forbidden"),
    (110, 161, "http_5xx"),
)
"""The minutes from and to which a resource cannot be read, and why."""

RESTART = 135

SETTINGS = {
    "UPSTREAM_API_URL": "http://netbird.example",
    "UPSTREAM_API_TOKEN": "secret",
    "COLLECTORS": "default,memberships,events",
    "REFRESH_INTERVALS": "peers=5m",
}

OWN = b"""{
    "dollars": {"agent_month": 1e9},
    "groups": {"important": ["All"], "routers": ["All"]},
    "settings": {"peer_login_expiration_enabled": true}
}"""
"""Thresholds that turn on alerts."""

LATE, NOT_WATCHED = "ApiExporterDataLate", "ApiExporterTokenNotWatched"
NAMED: dict[str, Set[str]] = {
    LATE: {name for name, one in RESOURCE_BY_NAME.items() if 30 < one.period < 3600},
    NOT_WATCHED: {"access_tokens"},
    "": set(),
}
NAMED[LATE] |= {ACCESS_LOG}
EXPECTED = {30: LATE, 65: "", 105: NOT_WATCHED, 160: LATE, 190: ""}
"""The alert about what cannot be read, by minute."""

END = max(EXPECTED)

FIRST = {CURRENT_USER, "agent_providers"}
"""Resources that must be read before some others are requested."""

PATH = {
    name: resource.path.format(current_user=EXPORTER_ID)
    for name, resource in RESOURCE_BY_NAME.items()
}


def accounts() -> dict[str, set[str]]:
    """Return the unread resources by account.

    For any two resources, some account reads the first one and not the second.
    """
    found: dict[str, set[str]] = {name: set() for name in "1234567"}
    others = [name for name in RESOURCE_BY_NAME if name not in {"peers", *FIRST}]
    for name, some in zip(others, combinations(found, 3), strict=False):
        for account in some:
            found[account].add(name)
    down = {"no peers": {"peers"}, "nothing": set(RESOURCE_BY_NAME)}
    return {**found, "first": FIRST, **down}


def quiet() -> dict[str, bytes]:
    """Return the bodies of a network that gives no alert, by path."""
    network = SimulatedNetwork(14)
    found = {p[1:]: json.loads(b"".join(network.body(p, START) or ())) for p in PATHS}
    for peer in found["api/peers"]:
        peer |= {"connected": True, "login_expired": False, "version": "0.70.0"}
    for user in found["api/users"]:
        user["pending_approval"] = False
    [policy, *_] = found["api/policies"]
    checks = [check["id"] for check in found["api/posture-checks"]]
    found["api/policies"] = [policy | {"source_posture_checks": checks}]
    found[PATH[CURRENT_USER]] = json.loads(body(CURRENT_USER)) | {"id": EXPORTER_ID}
    return {path: json.dumps(records).encode() for path, records in found.items()}


class Account:
    """An account of a program that lives until the end, with a restart.

    Attributes:
        series: the values of each series by the number of the scrape.
    """

    def __init__(self, bodies: dict[str, bytes], unread: set[str], known: Set[str]):
        self._bodies = bodies
        self._unread = {PATH[name] for name in unread}
        reads_log = "true" if unread & {ACCESS_LOG, "peers"} else "false"
        self._environ = {**SETTINGS, "ACCESS_LOG_METRICS": reads_log}
        self._service = json.loads(bodies[PATH["proxy_services"]])[0]["id"]
        self._log, self._rows = Table(), 0
        self._clock = Clock()
        self.series: dict[str, dict[int, float]] = defaultdict(dict)
        for step in range(END // STEP + 1):
            if step in {0, RESTART // STEP}:
                self._start()
            for _ in events_until(self._clock, step * STEP * 60 + 1):
                pass
            self._scrape(step, known)
            if step == RESTART // STEP - 1:
                self._network.stopService()

    def _now(self) -> float:
        return START + self._clock.seconds()

    def _start(self) -> None:
        settings = read_settings(self._environ).accounts[""]
        [quota] = quotas([settings]).values()
        self._registry, self._started = CollectorRegistry(), self._clock.seconds()
        threads = ThreadPool()  # never starts: no file is written
        logs = LogFactory(self._clock, threads, compute_at_once, self._now)  # type: ignore[arg-type]
        periods = quota.selection.periods
        feature = logs.feature(settings, self._registry, Logger(), periods)
        self._network = AccountNetwork(
            fetch=self._fetch,
            quota=quota,
            world=World(self._clock, self._now, lambda: 0.5),
            registry=self._registry,
            options=NetworkOptions(metrics_max_age=900),
            features=[feature],
        )
        self._network.followers.clear()  # Findings take half of the time.
        assert feature.service is not None
        feature.service.setServiceParent(self._network)
        self._network.startService()

    async def _fetch(self, path: str, _seconds: float) -> ResponseBody:
        path, _, query = path.partition("?")
        for begin, end, reason in ERRORS:
            if path in self._unread and begin <= self._clock.seconds() / 60 < end:
                raise UpstreamError(reason, reason)
        if path != PATH[ACCESS_LOG]:
            return ResponseBody(self._bodies[path])
        while 5 * self._rows < self._clock.seconds():  # twelve requests a minute
            at = round(START - LOG_START) + 5 * self._rows
            self._log.add(at, service_id=self._service)
            self._rows += 1
        return ResponseBody(self._log.answer(query))

    def _scrape(self, step: int, known: Set[str]) -> None:
        """Add the known families; promtool's time begins at 0."""
        page = (self._network.text() + generate_latest(self._registry)).decode()
        page += f"process_start_time_seconds{{}} {START + self._started}\n"
        for name, labels, value in re.findall(r"(?m)^(\w+)(?:{(.*)})? (\S+)$", page):
            if name in known:
                zero = START if re.search("timestamp|start_time", name) else 0
                self.series[f"{name}{{{labels}"][step] = float(value) - zero


def lines(name: str, series: dict[str, dict[int, float]]) -> Iterator[dict[str, str]]:
    """Yield the series of an account in promtool's notation."""
    target = f'job="api-exporter",instance="a",account="{name}"}}'
    for one, by_step in series.items():
        steps = (str(by_step.get(step, "_")) for step in range(END // STEP + 1))
        runs = ((value, len(list(some))) for value, some in groupby(steps))
        values = (f"{value}x{count - (value != '_')}" for value, count in runs)
        comma = "" if one.endswith("{") else ","
        yield {"series": f"{one}{comma}{target}", "values": " ".join(values)}


def expected(alert: str) -> Iterator[dict[str, object]]:
    """Yield what fires about the exporter, by account and resource."""
    for account, unread in accounts().items():
        labels = f'{{account="{account}", alertname="{alert}"'
        if alert and "peers" in unread:  # one alert for all
            failing = labels.replace(alert, "ApiExporterUpstreamFailing")
            yield {"labels": f"{failing}}}", "value": 1}
            continue
        for name in NAMED[alert] & unread:
            yield {"labels": f'{labels}, resource="{name}"}}', "value": 1}


class FalseAlarmTests(SynchronousTestCase):
    def test_unread(self) -> None:
        """No alert about the network fires, and the others name what is unread."""
        folder, bodies = new_folder(self), quiet()
        known = {"process_start_time_seconds"}
        for name in RULE_FILES:
            text = rules(name, with_changes(OWN))
            known |= set(re.findall(r"\b(?:api_exporter|netbird_api)_\w+", text))
            # What lasts for minutes could last for hours.
            text = re.sub(r' for: "?(\d+h|\d\dm)"?', " for: 10m", text)
            text = re.sub(r"keep_firing_for: \w+", "keep_firing_for: 0s", text)
            (folder / f"{name}.yml").write_text(text)
        series = [{"series": 'up{job="api-exporter"}', "values": f"1x{END}"}]
        for name, unread in accounts().items():
            series += lines(name, Account(bodies, unread, known).series)
        firing = 'ALERTS{{alertstate="firing", alertname{}"ApiExporter.*"}}'
        count = "count by (account, alertname, resource) ({})"
        about_network = f"max_over_time({firing.format('!~')}[{END}m])"
        cases: list[dict[str, object]] = [
            {
                "expr": count.format(firing.format("=~")),
                "eval_time": f"{minute}m",
                "exp_samples": [*expected(alert)],
            }
            for minute, alert in EXPECTED.items()
        ]
        cases += [{"expr": count.format(about_network), "eval_time": f"{END}m"}]
        test = {"input_series": series, "promql_expr_test": cases}
        file = {
            "rule_files": [f"{name}.yml" for name in RULE_FILES],
            "evaluation_interval": f"{STEP}m",
            "tests": [{"interval": f"{STEP}m", **test}],
        }
        (folder / "test.yml").write_text(json.dumps(file))
        run(program("promtool"), "test", "rules", folder / "test.yml")

"""The dashboards, as far as they can be checked without Grafana."""

import json
import re
import sys
from collections.abc import Mapping

from twisted.trial.unittest import SynchronousTestCase

from deploy.grafana.boards import FILES
from tests.deploy.programs import DEPLOY, documents, new_folder, run
from tests.deploy.queries import (
    DASHBOARDS,
    board_query,
    dashboard,
    fill,
    panel_queries,
    panels,
    selectors,
    variable_queries,
)
from tests.integration.programs import program

Series = dict[str, float]
"""Values by series."""

FOLDER = DEPLOY / "grafana/dashboards"
NETWORK, PEER = FOLDER / "network.json", FOLDER / "peer.json"
AGENTS, EXPORTER = FOLDER / "agent-network.json", FOLDER / "exporter.json"

COUNTERS = r"\w+(?:_total|_bucket)\{"

PROCESS = re.compile(
    r"process_|python_|api_exporter_(?:build_info|reactor_|scrapes_in_flight)"
)
"""Metrics of a process for all its accounts."""


def target(account: str = "", instance: str = "a:8080", **labels: str) -> str:
    """Return the labels of a series of an exporter, or of one of its accounts."""
    named = {"job": "api-exporter", "instance": instance, **labels}
    if account:
        named["account"] = account
    return ",".join(f'{name}="{value}"' for name, value in named.items())


def reading(of: str, *, peers: int = 10, critical: int = 0, warning: int = 0) -> Series:
    """Return what an exporter that reads an account has; `of` are its labels."""
    return {
        f"up{{{of}}}": 1,
        f"netbird_api_up{{{of}}}": 1,
        f'netbird_api_peers{{{of},connected="true"}}': peers,
        f'netbird_api_peers{{{of},connected="false"}}': 2,
        f'api_exporter_attention{{{of},severity="critical"}}': critical,
        f'api_exporter_attention{{{of},severity="warning"}}': warning,
        f"netbird_api_networks{{{of}}}": 1,
    }


def failing(of: str) -> Series:
    """Return what an exporter has that could never read an account."""
    return {
        f"up{{{of}}}": 1,
        f"netbird_api_up{{{of}}}": 0,
        f'api_exporter_attention{{{of},severity="critical"}}': 1,
        f'api_exporter_attention{{{of},severity="warning"}}': 0,
    }


UP = "api_exporter_resource_up"
A, B, C = target("a"), target("b"), target("c")

SITUATIONS: dict[str, tuple[Series, list[float | None]]] = {
    "nothing": ({}, [4, None, None, None]),
    "a start": ({f"up{{{target()}}}": 1}, [None, None, None, None]),
    "healthy": (reading(target()), [0, 10, 0, 1]),
    "warnings": (reading(target(), warning=2), [1, 10, 0, 1]),
    "a list that cannot be read": (
        reading(target()) | {f'{UP}{{{target()},resource="groups"}}': 0},
        [0.5, 10, 0, 1],
    ),
    "a list that one of two exporters cannot read": (
        reading(A)
        | reading(target("a", "b:8080"))
        | {f'{UP}{{{A},resource="groups"}}': 0}
        | {f'{UP}{{{target("a", "b:8080")},resource="groups"}}': 1},
        [0, 10, 0, 1],
    ),
    "an outage": (reading(target(), warning=2, critical=1), [2, 10, 1, 1]),
    "an exporter that is down": ({f"up{{{target()}}}": 0}, [4, None, None, None]),
    "one of three accounts dead": (
        reading(A) | reading(B, peers=5, critical=1) | failing(C),
        [3, 15, 2, 2],
    ),
    "three accounts": (reading(A) | reading(B) | reading(C), [0, 30, 0, 3]),
    "the exporter of one account of two down": (
        reading(A) | {f"up{{{target('b', 'b:8080')}}}": 0},
        [4, 10, 0, 1],
    ),
    "two exporters of one account": (
        reading(target(), critical=1) | reading(target(instance="b:8080"), critical=1),
        [2, 10, 1, 1],
    ),
    "two exporters, one of them down": (
        reading(target()) | {f"up{{{target(instance='b:8080')}}}": 0},
        [0, 10, 0, 1],
    ),
    "two exporters, one of them without a token": (
        reading(A) | failing(target("a", "b:8080")),
        [2, 10, 1, 1],
    ),
}
"""Samples, and the verdict, the connected peers, the critical findings and the accounts
that are read: None without a value."""


def twins() -> Series:
    """Return two objects of each kind with one name: the first one is worse."""
    samples: Series = {f"netbird_api_networks{{{target()}}}": 2}
    for n in (0, 1):
        thing = f'{target()},finding="X",severity="info",object_type="peer"'
        key = f'{target()},setup_key="ci",setup_key_id="{n}"'
        network = f'{target()},network="office",network_id="{n}"'
        days, routing = 2 + 28 * n, "netbird_api_network_routing_peers"
        limit = f'{target()},limit="team",limit_id="{n}",limit_of="policy",per="user"'
        samples |= {
            f'{SINCE}{{{thing},object="phone",object_id="{n}"}}': 7,
            f"netbird_api_setup_key_valid{{{key}}}": 1,
            f"{EXPIRY}{{{key}}}": 300 + 86400 * days,
            f'{RATIO}{{{limit},unit="usd",window_seconds="86400"}}': 1 - n,
            f"{routing}{{{network}}}": 2,
            f"{routing}_connected{{{network}}}": 2 * n,
            f'netbird_api_network_resources{{{network},enabled="true"}}': 1,
        }
    return samples


SINCE = "api_exporter_finding_since_timestamp_seconds"
EXPIRY = "netbird_api_setup_key_expiration_timestamp_seconds"
RATIO = "netbird_api_agent_limit_used_ratio"

FIGURES = (
    (NETWORK, "The network"),
    (NETWORK, "Connected peers"),
    (NETWORK, "Findings"),
    (EXPORTER, "Accounts read"),
)


class FigureTests(SynchronousTestCase):
    def test_situations(self) -> None:
        """The first screen's figures hold for several exporters and accounts."""
        figures = [f"sum({board_query(path, title)})" for path, title in FIGURES]
        self.check(
            {
                name: (samples, dict(zip(figures, values, strict=True)))
                for name, (samples, values) in SITUATIONS.items()
            }
        )

    def test_twins(self) -> None:
        """A panel hides neither of two objects with one name."""
        findings, expiry, networks = (
            board_query(NETWORK, title)
            for title in (
                "Findings, the worst and newest first",
                "Next to expire",
                "Networks and routes",
            )
        )
        budgets = board_query(AGENTS, "How full each budget is")
        wanted: dict[str, float | None] = {
            f"count({budgets})": 2,
            f"count({findings})": 2,
            f"sum({expiry})": 2,
            f"min({networks})": 0,
        }
        self.check({"twins": (twins(), wanted)})

    def test_down(self) -> None:
        """An exporter that is down is a finding, however long it has been so."""
        query = board_query(NETWORK, "Findings, the worst and newest first")
        wanted: dict[str, float | None] = {f"count({query})": 1}
        self.check({"down": ({f"up{{{target()}}}": 0}, wanted)})

    def test_two_versions(self) -> None:
        """A panel has each peer once while two exporters differ about the peers."""
        latency = 'netbird_peer_latency_seconds{account="a",peer="db.netbird.cloud"}'
        samples: Series = {latency: 1}
        for number in (1, 2):
            of = f'{target("a", f"{number}:8080")},peer="db{number}",peer_id="p"'
            more = f'dns_label="db.netbird.cloud",user_id="",version="{number}"'
            samples[f"netbird_api_peer_info{{{of},{more}}}"] = 1
        of = f'{target("a", "1:8080")},peer="db1",peer_id="p"'
        samples[f"netbird_api_peer_last_seen_timestamp_seconds{{{of}}}"] = 7
        wanted: dict[str, float | None] = {
            f"count({board_query(path, title)})": 1
            for path, title in (
                (NETWORK, "Offline machines"),
                (FOLDER / "sources.json", "Latency to peers"),
            )
        }
        self.check({"two versions": (samples, wanted)})

    def test_routes(self) -> None:
        """Routes to one destination replace each other; of several the worst counts."""
        query = board_query(NETWORK, "Networks and routes")
        situations = {}
        for name, networks, value in (
            ("two destinations", "ab", 0),
            ("one destination", "aa", 1),
            ("one route", "a", 2),
        ):
            samples: Series = {}
            for number, network in enumerate(networks):
                of = f'{target()},network_id="office",route_id="{number}"'
                routing = "netbird_api_route_routing_peers"
                samples |= {
                    f'netbird_api_route_info{{{of},network="{network}"}}': 1,
                    f"{routing}{{{of}}}": 1,
                    f"{routing}_connected{{{of}}}": 1 - number,
                }
            situations[name] = samples, {f"sum({query})": value}
        self.check(situations)

    def test_beginning(self) -> None:
        """A network without connected peers has no change in percent."""
        query = f"sum({board_query(NETWORK, 'Change in 1 h')})"
        self.check(
            {
                f"{peers} peers": (reading(target(), peers=peers), {query: change})
                for peers, change in ((0, None), (10, 0.0))
            }
        )

    def test_change(self) -> None:
        """Peers of an account that cannot be read any more, or only now, are neither
        lost nor new.
        """
        query = f"sum({board_query(NETWORK, 'Change in 1 h')})"
        lost, found = (
            reading(A) | {f'netbird_api_peers{{{B},connected="true"}}': values}
            for values in ("5x4 stale", "_x5 5")
        )
        self.check({"lost": (lost, {query: 0}), "found": (found, {query: 0})})

    def test_accounts(self) -> None:
        """An account whose page does not answer is one of all, its process is not."""
        [panel] = [p for p in panels(EXPORTER) if p["title"] == "Accounts read"]
        read, every = (f"sum({fill(one['expr'])})" for one in panel["targets"])
        one = reading(A) | {f"up{{{target()}}}": 1}
        self.check(
            {
                "one page": (one | {f"up{{{B}}}": 0}, {read: 1, every: 2}),
                "a process": (
                    {f"up{{{of}}}": 0 for of in (target(), A, B)},
                    {read: None, every: 2},
                ),
            }
        )

    def test_two_jobs(self) -> None:
        """Two jobs of one exporter, of which one has its own metrics, are choices."""
        own, of = (f'{{job="{job}",instance="a"}}' for job in ("api-exporter", "peers"))
        samples = {f"api_exporter_build_info{own}": 1.0, f"netbird_api_peers{of}": 2.0}
        choices = dict(variable_queries())["network: job"]
        self.check({"two": (samples, {f"count(count by (job) ({choices}))": 2})})

    def test_unknown(self) -> None:
        """Networks are not all right while their peers are unknown. A login may expire
        while the account's settings are unknown. Routes are shown without networks.
        References of rules alone are not those of policies, too.
        """
        of = f'{target()},network_id="n",network="office"'
        peer = {f'netbird_api_peer_info{{{target()},peer_id="p"}}': 1.0}
        accounts = f'api_exporter_resource_up{{{target()},resource="accounts"}}'
        routing = f"netbird_api_network_routing_peers_connected{{{of}}}"
        resources = {
            f'netbird_api_network_resources{{{of},enabled="{half}"}}': number
            for half, number in (("true", 1.0), ("false", 0.0))
        }
        one, none = ({f"netbird_api_networks{{{target()}}}": n} for n in (1.0, 0.0))
        route = f'{target()},route_id="r",network_id="office"'
        routes = {
            f"netbird_api_route_info{{{route}}}": 1.0,
            f"netbird_api_route_routing_peers{{{route}}}": 1.0,
            f"netbird_api_route_routing_peers_connected{{{route}}}": 0.0,
        }
        agents = "netbird_api_agent"
        policies, no_policies, rules = (
            {f'{agents}_{kind}{{{target()},enabled="true"}}': number}
            for kind, number in (
                ("policies", 1.0),
                ("policies", 0.0),
                ("budget_rules", 0.0),
            )
        )
        policy = f'{target()},agent_policy_id="p",agent_policy="staff"'
        missing = {f"{agents}_policy_missing_references{{{policy}}}": 2.0}
        for path, title, situations in (
            (
                *(NETWORK, "Networks down"),
                (
                    (one | resources, None),
                    (one | {routing: 2}, None),
                    (one | resources | {routing: 2}, 0),
                    (one | resources | {routing: 0}, 1),
                    (none, 0),
                ),
            ),
            (*(NETWORK, "Networks and routes"), ((none | routes, 0), (routes, 0))),
            (
                *(AGENTS, "Missing references"),
                (
                    (policies | rules, None),
                    (policies | missing | rules, 2),
                    (no_policies | rules, 0),
                    (policies | missing, None),
                ),
            ),
            (
                *(PEER, "Login"),
                (
                    (peer, None),
                    (peer | {accounts: 0}, None),
                    (peer | {accounts: 1}, 1_000_000),
                ),
            ),
        ):
            query = f"sum({board_query(path, title)})"
            self.check(
                {
                    f"{title} {number}": (samples, {query: value})
                    for number, (samples, value) in enumerate(situations)
                }
            )

    def check(
        self,
        situations: Mapping[
            str, tuple[Mapping[str, float | str], Mapping[str, float | None]]
        ],
    ) -> None:
        """Check the value of each expression, or that it has none.

        A series has a value that stays, or promtool's text of several.
        """
        tests = [
            {
                "name": name,
                "interval": "1m",
                "input_series": [
                    {
                        "series": series,
                        "values": value if isinstance(value, str) else f"{value}x5",
                    }
                    for series, value in samples.items()
                ],
                "promql_expr_test": [
                    {
                        # Without labels: which exporter it is of, is another matter.
                        "expr": expression,
                        "eval_time": "5m",
                        "exp_samples": [{"labels": "{}", "value": value}]
                        if value is not None
                        else [],
                    }
                    for expression, value in figures.items()
                ],
            }
            for name, (samples, figures) in situations.items()
        ]
        file = new_folder(self) / "figures.yml"
        file.write_text(json.dumps({"tests": tests}))
        run(program("promtool"), "test", "rules", file)


class DashboardTests(SynchronousTestCase):
    def test_made(self) -> None:
        """The files are as the program makes them (`make boards`)."""
        self.assertEqual(set(DASHBOARDS), set(FILES))
        for path, made in FILES.items():
            self.assertEqual(made(), path.read_text(), path)

    def test_variables(self) -> None:
        """All boards have the five variables; "All" selects no other programs."""
        for path in DASHBOARDS:
            found = {v["name"]: v for v in dashboard(path)["templating"]["list"]}
            wanted = ["datasource", "account", "instance", "cluster", "job"]
            self.assertEqual(wanted, list(found)[:5])
            for name in wanted[1:]:
                self.assertEqual("$__all", found[name]["current"]["value"])
            for name in ("cluster", "account"):
                self.assertEqual(".*", found[name]["allValue"])
            for name in ("job", "instance"):
                self.assertNotIn("allValue", found[name], path)

    def test_expressions(self) -> None:
        """Selectors use the variables, joins keep accounts apart, no time is summed."""
        for title, expression in panel_queries(filled=False):
            self.assertNotRegex(expression, r"\binstance(_resource)?:")
            self.assertNotRegex(expression, r"sum by \S.*?\) \(\w+_timestamp_seconds")
            for name in selectors(expression):
                chosen = 'job=~"$job", instance=~"$instance"'
                if not PROCESS.match(name):
                    chosen = 'account=~"$account", ' + chosen
                self.assertIn('cluster=~"$cluster", ' + chosen, name)
            for counter in re.finditer(COUNTERS, expression):
                after = expression[counter.end() :].partition("}")[2]
                self.assertRegex(after, r"^\[(\$__rate_interval|10m)\]", title)
            for labels in re.findall(r"\bon \(([^)]+)\)", expression):
                self.assertRegex(labels, r"^cluster, account\b", title)

    def test_empty(self) -> None:
        """A panel without series says so in words, and a table in no cell."""
        for path in DASHBOARDS:
            for panel in panels(path):
                config = panel["fieldConfig"]
                fixed = any("vector(" in t["expr"] for t in panel["targets"])
                if panel["type"] != "timeseries" and not fixed:
                    self.assertIn("noValue", config["defaults"], panel["title"])
                if panel["type"] == "table":
                    dash = {"id": "noValue", "value": "–"}
                    every = {"id": "byRegexp", "options": "/.*/"}
                    of_cells = {"matcher": every, "properties": [dash]}
                    self.assertEqual(of_cells, config["overrides"][0])
                if panel["type"] == "stat":
                    self.assertEqual(
                        ["last"], panel["options"]["reduceOptions"]["calcs"]
                    )

    def test_fresh(self) -> None:
        """No panel calls a list fresh that was read, but may be late by now."""
        for path in DASHBOARDS:
            self.assertNotIn('"fresh"', path.read_text(), path)

    def test_runbooks(self) -> None:
        """Panels that runbooks name exist."""
        text = (DEPLOY.parent / "docs/runbooks.md").read_text()
        titles = {panel["title"] for path in DASHBOARDS for panel in panels(path)}
        named = set(re.findall(r'(?:table|panel) "([^"]+)"', text))
        self.assertEqual(set(), named - titles)
        self.assertGreater(len(named), 3)

    def test_links(self) -> None:
        """Findings lead to runbooks, peers and accounts to boards."""
        ids = {dashboard(path)["uid"] for path in DASHBOARDS}
        links = {}
        for path in DASHBOARDS:
            for panel in panels(path):
                config = panel["fieldConfig"]
                properties = {
                    p["id"]: p["value"]
                    for o in config.get("overrides", [])
                    for p in o["properties"]
                }
                for link in properties.get(
                    "links", config["defaults"].get("links", ())
                ):
                    links[panel["title"]] = link["url"]
                    board = re.match(r"/d/([\w-]+)\?", link["url"])
                    self.assertTrue(board is None or board[1] in ids, link)
        findings = links["Findings, the worst and newest first"]
        runbook = "http://${__data.fields.instance}/runbooks#${__value.raw}"
        self.assertEqual(runbook, findings)
        for title in ("Offline machines", "Offline devices"):
            self.assertIn("var-peer=${__data.fields.peer_id}&", links[title])
            self.assertIn("${__all_variables}", links[title])
        self.assertIn("var-account=${__value.raw}", links["Accounts, the worst first"])

    def test_peer_names(self) -> None:
        """The variable of the peers shows names with addresses and holds ids."""
        [variable] = [
            v for v in dashboard(PEER)["templating"]["list"] if v["name"] == "peer"
        ]
        pattern = variable["regex"].strip("/").replace("(?<", "(?P<")
        found = re.search(pattern, '{ip="1", peer="db", peer_id="42", text="db 1"} 1 2')
        self.assertEqual({"value": "42", "text": "db 1"}, found and found.groupdict())

    def test_layout(self) -> None:
        """No two panels overlap, also in an open row, and none leaves the grid."""
        boards = [dashboard(path)["panels"] for path in DASHBOARDS]
        rows = [row.get("panels", []) for every in boards for row in every]
        for every in (*boards, *rows):
            taken: set[tuple[int, int]] = set()
            for panel in every:
                at = panel["gridPos"]
                columns = range(at["x"], at["x"] + at["w"])
                cells = {(x, at["y"] + y) for x in columns for y in range(at["h"])}
                self.assertEqual(set(), taken & cells, panel["title"])
                self.assertLessEqual(columns.stop, 24)
                taken |= cells

    def test_publication(self) -> None:
        """A copy for grafana.com asks for its data source and names its needs."""
        folder = new_folder(self)
        run(sys.executable, DEPLOY / "release/dashboards.py", folder)
        found = {path.name: dashboard(path) for path in folder.iterdir()}
        self.assertEqual({path.name for path in DASHBOARDS}, {*found})
        self.assertEqual(len(found), len({copy["uid"] for copy in found.values()}))
        for path in DASHBOARDS:
            copy, shipped = found[path.name], dashboard(path)
            [wanted] = copy.pop("__inputs")
            source = copy["templating"]["list"][0].pop("current")["value"]
            self.assertEqual(f"${{{wanted['name']}}}", source)
            needed = {one["id"] for one in copy.pop("__requires")}
            types = {panel["type"] for panel in panels(path)}
            types |= {"row"} & {panel["type"] for panel in shipped["panels"]}
            self.assertEqual({"grafana", wanted["pluginId"], *types}, needed)
            self.assertIsNone(copy.pop("id"))
            self.assertEqual({}, copy.pop("__elements"))
            shipped["templating"]["list"][0].pop("current", None)
            self.assertEqual(shipped, copy)
            self.assertRegex(copy["uid"], "^netbird-[a-z-]{4,32}$")
            self.assertTrue(copy["description"].endswith("."))

    def test_provisioning(self) -> None:
        """Provisioning names a Prometheus, and the directory that Compose mounts."""
        provisioning = DEPLOY / "grafana/provisioning"
        [sources] = documents(provisioning / "datasources/prometheus.yml")
        self.assertEqual(["prometheus"], [s["type"] for s in sources["datasources"]])
        [providers] = documents(provisioning / "dashboards/api-exporter.yml")
        [provider] = providers["providers"]
        [compose] = documents(DEPLOY / "container/compose.yml")
        mounted = [v.split(":")[1] for v in compose["services"]["grafana"]["volumes"]]
        self.assertIn(provider["options"]["path"], mounted)

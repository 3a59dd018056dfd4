"""The dashboards, as far as they can be checked without Grafana."""

import json
import re
import sys

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, documents, new_folder, run
from tests.deploy.queries import DASHBOARDS, dashboard, panel_queries, panels, selectors
from tests.prometheus import THRESHOLDS

FOLDER = DEPLOY / "grafana/dashboards"
NETWORK, PEER = FOLDER / "network.json", FOLDER / "peer.json"

COUNTERS = r"\w+(?:_total|_bucket)\{"

PROCESS = re.compile(
    r"process_|python_|api_exporter_(?:build_info|reactor_|scrapes_in_flight)"
)
"""Metrics of a process for all its accounts."""


class DashboardTests(SynchronousTestCase):
    def test_variables(self) -> None:
        """All have variables for data source, cluster, job, instance and account. "All"
        includes series without the label, but no jobs and instances of other programs.
        """
        names = ["agent-network", "exporter", "network", "peer", "proxy", "sources"]
        self.assertEqual(names, [path.stem for path in DASHBOARDS])
        for path in DASHBOARDS:
            found = {v["name"]: v for v in dashboard(path)["templating"]["list"]}
            wanted = ["datasource", "cluster", "job", "instance", "account"]
            self.assertEqual(wanted, list(found)[:5])
            for name in ("cluster", "account"):
                self.assertEqual(".*", found[name]["allValue"])
                self.assertEqual("$__all", found[name]["current"]["value"])
            for name in ("job", "instance"):
                self.assertNotIn("allValue", found[name], path)

    def test_expressions(self) -> None:
        """Each selector uses the variables; counters $__rate_interval, or an hour. Each
        join keeps targets apart. Times are not added up.
        """
        for title, expression in panel_queries(filled=False):
            self.assertNotRegex(expression, r"sum by \S.*?\) \(\w+_timestamp_seconds")
            for name in selectors(expression):
                chosen = 'job=~"$job", instance=~"$instance"'
                if not PROCESS.match(name):
                    chosen = 'account=~"$account", ' + chosen
                self.assertIn('cluster=~"$cluster", ' + chosen, name)
            for counter in re.finditer(COUNTERS, expression):
                after = expression[counter.end() :].partition("}")[2]
                self.assertRegex(after, r"^\[(\$__rate_interval|1h)\]", title)
        for path in DASHBOARDS:
            for labels in re.findall(r"\bon \(([^)]*)\)", path.read_text()):
                # Joins of several sources keep accounts apart instead.
                other = "|account" if path.stem == "sources" else ""
                wanted = f"^cluster, ((account, job, )?instance{other})"
                self.assertRegex(labels, wanted, path)

    def test_thresholds(self) -> None:
        """The thresholds of panels are those of the alerts."""
        thresholds = json.loads(THRESHOLDS.read_text())
        days, shares = thresholds["days"], thresholds["shares"]
        [panel] = [p for p in panels(NETWORK) if p["title"] == "Needs attention"]
        expression = panel["targets"][0]["expr"]
        for name, of in (
            ("setup_key_expiration", days["setup_key_soon"]),
            ("access_token_expiration", days["access_token_soon"]),
            ("proxy_token_expiration", days["proxy_token_soon"]),
            ("proxy_token_last_used", days["in_use"]),
        ):
            found = re.search(
                rf"{name}_\w+{{[^}}]*}}(?: - time\(\))? < (\d+) \*", expression
            )
            self.assertEqual(str(of), found and found[1], name)
        found = re.search(r"usage_limit{[^}]*} >= ([\d.]+)", expression)
        self.assertEqual(str(shares["setup_key_used"]), found and found[1])

    def test_links(self) -> None:
        """The rows of peers link to the peer's page, with all variables."""
        rows = {p["title"]: p for p in panels(NETWORK) if p["type"] == "table"}
        for title in ("Offline peers", "Logins"):
            [links] = [
                (override["matcher"]["options"], value["value"])
                for override in rows[title]["fieldConfig"]["overrides"]
                for value in override["properties"]
                if value["id"] == "links"
            ]
            self.assertEqual("Peer", links[0])
            [link] = links[1]
            self.assertTrue(link["url"].startswith("/d/netbird-peer?"))
            self.assertIn("var-peer=${__data.fields.peer_id}", link["url"])
            for name in ("datasource", "cluster", "job", "instance", "account"):
                self.assertIn(f"${{{name}:queryparam}}", link["url"])
        self.assertEqual("netbird-peer", dashboard(PEER)["uid"])

    def test_peer_names(self) -> None:
        """The variable of the peers shows names and holds ids."""
        [variable] = [
            v for v in dashboard(PEER)["templating"]["list"] if v["name"] == "peer"
        ]
        pattern = variable["regex"].strip("/").replace("(?<", "(?P<")
        line = 'netbird_api_peer_info{ip="1", peer="db", peer_id="42", os="x"} 1 2'
        found = re.search(pattern, line)
        self.assertEqual(("db", "42"), found and found.groups())

    def test_layout(self) -> None:
        """No two panels overlap, and none leaves the grid."""
        for path in DASHBOARDS:
            taken: set[tuple[int, int]] = set()
            for panel in dashboard(path)["panels"]:
                at = panel["gridPos"]
                columns = range(at["x"], at["x"] + at["w"])
                cells = {(x, at["y"] + y) for x in columns for y in range(at["h"])}
                self.assertEqual(set(), taken & cells, panel["title"])
                self.assertLessEqual(columns.stop, 24)
                taken |= cells

    def test_publication(self) -> None:
        """A copy for grafana.com asks for its data source and names what it needs. All
        else is the dashboard's, which has a uid and a description.
        """
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
            types = {panel["type"] for panel in shipped["panels"]}
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

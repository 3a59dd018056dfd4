"""The dashboards, as far as they can be judged without Grafana."""

import re

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY
from tests.deploy.queries import DASHBOARDS, dashboard, panels, selectors
from tests.deploy.yaml_files import documents

COUNTERS = r"\w+(?:_total|_bucket)\{"


class DashboardTests(SynchronousTestCase):
    def test_variables(self) -> None:
        """Both let one choose data source, job and instance."""
        self.assertEqual(["exporter", "network"], [path.stem for path in DASHBOARDS])
        for path in DASHBOARDS:
            found = [v["name"] for v in dashboard(path)["templating"]["list"]]
            self.assertEqual(["datasource", "job", "instance"], found)

    def test_panels(self) -> None:
        """Each panel has title, description, unit and the chosen data source."""
        for path in DASHBOARDS:
            for panel in panels(path):
                title = panel["title"]
                self.assertTrue(title and panel["description"].endswith("."), title)
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], title)
                self.assertEqual("${datasource}", panel["datasource"]["uid"], title)
            for key in ("id", "title"):
                found = [panel[key] for panel in panels(path)]
                self.assertEqual(len(set(found)), len(found), key)

    def test_expressions(self) -> None:
        """Each selector is limited to the chosen job and instance, and counters are
        looked at over $__rate_interval, or over an hour.
        """
        for path in DASHBOARDS:
            for panel in panels(path):
                for target in panel["targets"]:
                    expression = target["expr"]
                    for name in selectors(expression):
                        chosen = 'job=~"$job", instance=~"$instance"'
                        self.assertIn(chosen, name, expression)
                    for counter in re.finditer(COUNTERS, expression):
                        after = expression[counter.end() :].partition("}")[2]
                        self.assertRegex(after, r"^\[(\$__rate_interval|1h)\]")

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

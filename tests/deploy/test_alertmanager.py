"""The examples for Alertmanager, run by amtool and Alertmanager."""

import json
import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, documents, run
from tests.deploy.queries import rules
from tests.integration.programs import free_port, get, program, start, until

CONFIG = DEPLOY / "prometheus/alertmanager.yml"

MONITORING = DEPLOY / "monitoring"

ACME = ("job=api-exporter", "instance=a", "account=acme")
BETA = ("job=api-exporter", "instance=a", "account=beta")


class ConfigTests(SynchronousTestCase):
    def test_routes(self) -> None:
        """Amtool accepts both examples, and alerts reach their receivers."""
        amtool = program("amtool")
        example = MONITORING / "alertmanager.yml"
        dropped = "NetBirdFleetDropped severity="
        for file, labels, receiver in (
            (CONFIG, f"{dropped}critical", "on-call"),
            (CONFIG, f"{dropped}warning", "team"),
            (CONFIG, f"{dropped}info", "nobody"),
            (example, "NetBirdImportantPeerOffline", "help-desk"),
            (example, "NetBirdLoginExpiresSoon", "help-desk"),
            (example, "NetBirdNetworkUnreachable", "on-call"),
            (example, "NetBirdServerDown", "on-call"),
            (example, "NetBirdPolicyEmpty", "nobody"),
        ):
            self.assertIn("SUCCESS", run(amtool, "check-config", file))
            routes = ("config", "routes", "test", f"--config.file={file}")
            said = run(amtool, *routes, *f"alertname={labels}".split())
            self.assertEqual(receiver, said.split()[-1], f"{file}: {labels}")

    def test_names(self) -> None:
        """Each alert of the examples is in a shipped rule file."""
        known = [rule["alert"] for rule in rules("alerts.yml")]
        [config] = documents(CONFIG)
        for rule in config["inhibit_rules"]:
            for matchers in (rule["source_matchers"], rule["target_matchers"]):
                pattern = matchers[0].partition("alertname")[2].strip(' =~"')
                found = [name for name in known if re.fullmatch(pattern, name)]
                self.assertNotEqual([], found, pattern)
        servers = (MONITORING / "rules.yml").read_text()
        known += re.findall(r"alert: (\w+)", servers)
        text = (MONITORING / "alertmanager.yml").read_text()
        for matcher in re.findall(r'alertname =~ "(.*)"', text):
            for name in re.findall(r"\w+(?=[|)])", matcher):
                self.assertIn(f"NetBird{name.removeprefix('NetBird')}", known)


class InhibitionTests(SynchronousTestCase):
    """An Alertmanager on a port of the loopback interface."""

    def setUp(self) -> None:
        self.amtool = program("amtool")
        directory = Path(self.mktemp())
        directory.mkdir()
        self.url = f"http://127.0.0.1:{free_port()}"
        start(
            self,
            [
                program("prometheus-alertmanager"),
                f"--config.file={CONFIG}",
                "--storage.path=data",
                "--cluster.listen-address=",
                f"--web.listen-address={self.url[7:]}",
            ],
            directory,
        )
        until(lambda: get(f"{self.url}/-/ready")[0] == 200, "Alertmanager")

    def told(self) -> set[tuple[str, str]]:
        """Return the name and account of alerts that are not inhibited."""
        said = run(
            self.amtool,
            *("alert", "query", f"--alertmanager.url={self.url}", "--output=json"),
        )
        return {
            (alert["labels"]["alertname"], alert["labels"].get("account", ""))
            for alert in json.loads(said)
        }

    def fire(self, name: str, *labels: str) -> None:
        url = f"--alertmanager.url={self.url}"
        run(self.amtool, "alert", "add", url, name, *labels)

    def test_root_cause(self) -> None:
        """A failing API inhibits its consequences, but only in the same account."""
        for cause in ("ApiExporterUpstreamFailing", "NetBirdFleetDropped"):
            self.fire(cause, *ACME)
        for name in ("NetBirdRouteUnreachable", "NetBirdImportantPeerOffline"):
            self.fire(name, *ACME)
            self.fire(name, *BETA)
        self.fire("ApiExporterEventLoopStalled", "job=api-exporter", "instance=a")
        expected = {
            ("ApiExporterUpstreamFailing", "acme"),
            ("NetBirdRouteUnreachable", "beta"),
            ("NetBirdImportantPeerOffline", "beta"),
            ("ApiExporterEventLoopStalled", ""),
        }
        until(lambda: self.told() == expected, str(expected))

    def test_network(self) -> None:
        """A network inhibits its own resources, an expiring token its own warning."""
        self.fire("NetBirdNetworkUnreachable", *ACME, "network_id=1")
        self.fire("NetBirdResourceUnreachable", *ACME, "network_id=1")
        self.fire("NetBirdResourceUnreachable", *BETA, "network_id=2")
        self.fire("ApiExporterTokenExpiresVerySoon", *ACME, "token_id=1")
        self.fire("ApiExporterTokenExpiresSoon", *ACME, "token_id=1")
        self.fire("ApiExporterTokenExpiresSoon", *BETA, "token_id=2")
        expected = {
            ("NetBirdNetworkUnreachable", "acme"),
            ("NetBirdResourceUnreachable", "beta"),
            ("ApiExporterTokenExpiresVerySoon", "acme"),
            ("ApiExporterTokenExpiresSoon", "beta"),
        }
        until(lambda: self.told() == expected, str(expected))

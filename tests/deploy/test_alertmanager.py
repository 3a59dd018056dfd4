"""The examples for Alertmanager, run by amtool and Alertmanager."""

import json
import re

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, documents, new_folder, run
from tests.deploy.queries import rules
from tests.integration.programs import becomes, free_port, get, program, start, until

CONFIG = DEPLOY / "prometheus/alertmanager.yml"

MONITORING = DEPLOY / "monitoring"


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
            # Without them, no alert about a network can fire.
            (example, "ApiExporterDown", "on-call"),
            (example, "ApiExporterUpstreamFailing", "on-call"),
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
        for prefix, names in re.findall(r"(\w+)\((.*?)\)", text):
            for name in names.split("|"):
                self.assertIn(f"{prefix}{name}", known)


class InhibitionTests(SynchronousTestCase):
    def test_inhibited(self) -> None:
        """An alert inhibits its consequences, but only in the same account. Without its
        process, no account is known.
        """
        amtool, port = program("amtool"), free_port()
        command = [program("prometheus-alertmanager"), f"--config.file={CONFIG}"]
        command += ["--storage.path=data", "--cluster.listen-address="]
        command += [f"--web.listen-address=127.0.0.1:{port}"]
        start(self, command, new_folder(self))
        until(lambda: get(f"http://127.0.0.1:{port}/-/ready")[0] == 200, "Alertmanager")
        url = f"--alertmanager.url=http://127.0.0.1:{port}"
        expected = set()
        for name, account, labels, inhibited in (
            ("ApiExporterUpstreamFailing", "a", "", False),
            ("NetBirdFleetDropped", "a", "", True),
            ("NetBirdRouteUnreachable", "a", "", True),
            ("NetBirdRouteUnreachable", "b", "", False),
            ("NetBirdImportantPeerOffline", "a", "", True),
            ("NetBirdImportantPeerOffline", "b", "", False),
            ("ApiExporterEventLoopStalled", "", "", False),
            ("NetBirdNetworkUnreachable", "c", "network_id=1", False),
            ("NetBirdResourceUnreachable", "c", "network_id=1", True),
            ("NetBirdResourceUnreachable", "d", "network_id=2", False),
            # The service may be one of another cluster.
            ("NetBirdProxyClusterOffline", "c", "proxy_cluster=eu", False),
            ("NetBirdProxyTunnelFailed", "c", "proxy_service_id=1", False),
            ("ApiExporterTokenExpiresVerySoon", "c", "token_id=1", False),
            ("ApiExporterTokenExpiresSoon", "c", "token_id=1", True),
            ("ApiExporterTokenExpiresSoon", "d", "token_id=2", False),
        ):
            target = f"job=api-exporter instance=a account={account} {labels}".split()
            run(amtool, "alert", "add", url, name, *target)
            if not inhibited:
                expected.add((name, account))

        for name, target in (
            ("ApiExporterDown", ["job=api-exporter"]),
            ("NetBirdRouteUnreachable", ["job=netbird", "account=e"]),
        ):
            run(amtool, "alert", "add", url, name, "instance=down", *target)
        expected.add(("ApiExporterDown", ""))

        def told() -> set[tuple[str, str]]:
            """Return the name and account of alerts that are not inhibited."""
            said = run(amtool, "alert", "query", url, "--output=json")
            found = [alert["labels"] for alert in json.loads(said)]
            return {(one["alertname"], one.get("account", "")) for one in found}

        becomes(expected, told)

"""A real Prometheus asks `/sd`: the documented jobs and their rules."""

import json
import re
from typing import Any

from tests.integration.exporter import GOOD, ExporterTestCase, Upstream
from tests.integration.programs import ROOT, get, start, until
from tests.integration.promql import Prometheus

# No target is ever scraped.
GLOBAL = "global: {scrape_interval: 1y, scrape_timeout: 1s}\n"

META = "__meta_netbird_"

RELABELLED = """
- job_name: relabelled
  http_sd_configs:
  - url: http://localhost:8080/sd?port=9100
"""


def documented() -> tuple[str, str]:
    """The jobs and the relabelling rules of the documentation."""
    text = (ROOT / "docs/service-discovery.md").read_text()
    jobs, rules = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return jobs, rules


class Discovery(Prometheus):
    """A Prometheus that discovers its targets."""

    def targets(self, job: str) -> list[dict[str, Any]]:
        """Return the targets of a job that its rules keep."""
        status, text = self.get("/api/v1/targets")
        if status != 200:
            return []
        active = json.loads(text)["data"]["activeTargets"]
        return [target for target in active if target["scrapePool"] == job]

    def instances(self, job: str) -> set[str]:
        return {target["labels"]["instance"] for target in self.targets(job)}


class DocumentedTests(ExporterTestCase):
    timeout = 240

    def setUp(self) -> None:
        super().setUp()
        url = Upstream(self, peers=100).url
        environ = self.reading(url, UPSTREAM_API_TOKEN=GOOD, COLLECTORS="users")
        start(self, self.exporter, self.directory, environ)
        until(lambda: get(self.list_url("?port=1"))[0] == 200, "the first refreshes")
        jobs, rules = documented()
        text = GLOBAL + jobs + RELABELLED + rules
        text = text.replace("localhost:8080", f"127.0.0.1:{self.port}")
        often = text.replace("- url:", "- refresh_interval: 1s\n    url:")
        self.prometheus = Discovery(self, self.directory, often)

    def list_url(self, query: str) -> str:
        return self.url(f"/sd{query}")

    def listed(self, query: str) -> list[dict[str, Any]]:
        """Return the exporter's own list."""
        found: list[dict[str, Any]] = json.loads(get(self.list_url(query))[2])
        return found

    def addresses(self, query: str) -> set[str]:
        return {entry["targets"][0] for entry in self.listed(query)}

    def test_jobs(self) -> None:
        """Each job has the targets that it should, with the labels of its rules."""
        have = self.prometheus.instances
        # Runners come and go: request the list until both agree.
        for job, query, port in (
            ("node", "?port=9100&group=servers", ""),
            ("netbird-client", "?port=9191", ""),
            ("ping", "?port=9115", ":9115"),
        ):
            until(
                lambda job=job, query=query, port=port: (  # type: ignore[misc]
                    {f"{x}{port}" for x in have(job)} == self.addresses(query)
                ),
                f"the targets of {job}",
            )
        everybody = self.listed("?port=9191")
        self.assertGreater(len(everybody), 80)
        self.assertGreater(len(everybody), len(have("node")))
        self.assertGreater(len(have("node")), 10)
        [router] = [x for x in everybody if x["labels"][f"{META}peer"] == "gw-hq-1"]
        [ping] = [
            x
            for x in self.prometheus.targets("ping")
            if x["labels"]["instance"] == router["labels"][f"{META}ip"]
        ]
        self.assertEqual(router["labels"][f"{META}peer_id"], ping["labels"]["peer_id"])
        self.assertIn(
            "http://localhost:9115/probe?module=icmp&target=100.", ping["scrapeUrl"]
        )
        # Prometheus discovered exactly what the exporter lists.
        [client] = [
            x
            for x in self.prometheus.targets("netbird-client")
            if x["labels"]["peer_id"] == router["labels"][f"{META}peer_id"]
        ]
        discovered = {
            k: v for k, v in client["discoveredLabels"].items() if k.startswith(META)
        }
        self.assertEqual(router["labels"], discovered)
        self.assert_relabelled()

    def assert_relabelled(self) -> None:
        """Fail unless the documented rules have the documented results."""
        expected = {}
        for entry in self.listed("?port=9100"):
            labels = entry["labels"]
            groups = labels.get(f"{META}groups", "")
            if f"{META}user_id" in labels or ",ci-runners," in groups:
                continue
            office = [x for x in ("ber", "lys") if f",{x}," in groups]
            expected[f"{labels[f'{META}dns_name']}:9100"] = "".join(office)

        def have() -> dict[str, str]:
            targets = self.prometheus.targets("relabelled")
            return {
                t["labels"]["instance"]: t["labels"].get("office", "") for t in targets
            }

        until(lambda: have() == expected, "the rules")
        self.assertEqual({"", "ber", "lys"}, set(expected.values()))

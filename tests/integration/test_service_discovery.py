"""A real Prometheus asks `/sd`: the documented jobs, an outage, and what it refuses."""

import json
import re
import subprocess
import sys
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from twisted.trial.unittest import TestCase

from api_exporter.demo.server import DEMO_TOKEN
from tests.integration.programs import (
    ROOT,
    environment,
    free_port,
    get,
    program,
    start,
    until,
)

# No target is ever scraped: none of them is there.
GLOBAL = "global: {scrape_interval: 1y, scrape_timeout: 1s}\n"

META = "__meta_netbird_"

MORE_JOBS = """
- job_name: ipv6
  http_sd_configs:
  - url: http://localhost:8080/sd?port=9100&port=9191&address=ipv6&group=servers
- job_name: dns
  http_sd_configs:
  - url: http://localhost:8080/sd?port=9100&address=dns
- job_name: nobody
  http_sd_configs:
  - url: http://localhost:8080/sd?port=9100&group=nobody
- job_name: wrong
  http_sd_configs:
  - url: http://localhost:8080/sd?port=9100&gruop=servers
- job_name: relabelled
  http_sd_configs:
  - url: http://localhost:8080/sd?port=9100
"""


def documented() -> tuple[str, str]:
    """The jobs and the relabelling rules of the documentation."""
    text = (ROOT / "docs/service-discovery.md").read_text()
    jobs, rules = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return jobs, rules


class Prometheus:
    """One that runs until the test ends."""

    def __init__(self, test: TestCase, directory: Path, configuration: str) -> None:
        command = program("prometheus")
        self.port = free_port()
        self.file = directory / "prometheus.yml"
        self.file.write_text(configuration)
        start(
            test,
            [
                command,
                f"--config.file={self.file.name}",
                "--storage.tsdb.path=tsdb",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            directory,
        )

    def targets(self, job: str) -> list[dict[str, Any]]:
        """Return the targets of a job that its rules keep."""
        status, _, body = get(f"http://127.0.0.1:{self.port}/api/v1/targets")
        if status != 200:
            return []
        active = json.loads(body)["data"]["activeTargets"]
        return [target for target in active if target["scrapePool"] == job]

    def instances(self, job: str) -> set[str]:
        return {target["labels"]["instance"] for target in self.targets(job)}

    def has(self, job: str, number: int) -> bool:
        """Return whether a job has so many targets."""
        return len(self.targets(job)) == number

    def failures(self) -> float:
        """How often a list could not be had."""
        _, _, body = get(f"http://127.0.0.1:{self.port}/metrics")
        found = re.search(
            r"^prometheus_sd_http_failures_total (\S+)$", body.decode(), re.MULTILINE
        )
        return float(found[1]) if found else -1


class DocumentedTests(TestCase):
    timeout = 240

    def setUp(self) -> None:
        program("prometheus")
        self.directory = Path(self.mktemp())
        for name in ("upstream", "exporter", "prometheus"):
            (self.directory / name).mkdir(parents=True)
        upstream, self.port = free_port(), free_port()
        self.upstream = start(
            self,
            [sys.executable, "-m", "tests.integration.simulated", f"{upstream}", "100"],
            self.directory / "upstream",
            environment(PYTHONPATH=str(ROOT)),
        )
        until(lambda: get(f"http://127.0.0.1:{upstream}/")[0] != 0, "the upstream")
        start(
            self,
            [sys.executable, "-m", "api_exporter"],
            self.directory / "exporter",
            environment(
                PYTHONPATH=str(ROOT),
                UPSTREAM_API_URL=f"http://127.0.0.1:{upstream}",
                UPSTREAM_API_TOKEN=DEMO_TOKEN,
                LISTEN_ADDRESS=f"127.0.0.1:{self.port}",
                COLLECTORS="users",
                METRICS_MAX_AGE="45s",
                REFRESH_INTERVALS="groups=30s",
            ),
        )
        until(lambda: get(self.url("?port=1"))[0] == 200, "the first round")
        jobs, rules = documented()
        text = GLOBAL + jobs + MORE_JOBS + rules
        text = text.replace("localhost:8080", f"127.0.0.1:{self.port}")
        often = text.replace("- url:", "- refresh_interval: 1s\n    url:")
        self.prometheus = Prometheus(self, self.directory / "prometheus", often)

    def url(self, query: str) -> str:
        return f"http://127.0.0.1:{self.port}/sd{query}"

    def listed(self, query: str) -> list[dict[str, Any]]:
        """Return the exporter's own list."""
        found: list[dict[str, Any]] = json.loads(get(self.url(query))[2])
        return found

    def addresses(self, query: str) -> set[str]:
        return {entry["targets"][0] for entry in self.listed(query)}

    def agree(self, job: str, query: str) -> None:
        """Wait until a job's targets are those of a query."""
        until(
            lambda: self.prometheus.instances(job) == self.addresses(query),
            f"the targets of {job}",
        )

    def test_jobs(self) -> None:
        """Each job has the targets that it should, with the labels of its rules."""
        have = self.prometheus.instances
        servers = self.addresses("?port=9100&group=servers")
        everybody = self.listed("?port=9191")
        peers = {entry["labels"][f"{META}ip"] for entry in everybody}
        self.assertGreater(len(peers), 80)
        self.assertGreater(len(peers), len(servers))
        self.assertGreater(len(servers), 10)
        # Runners come and go: request the list until both agree.
        for job, query in (
            ("node", "?port=9100&group=servers"),
            ("netbird-client", "?port=9191"),
            ("ipv6", "?port=9100&port=9191&address=ipv6&group=servers"),
            ("dns", "?port=9100&address=dns"),
        ):
            self.agree(job, query)
        until(
            lambda: {f"{x}:9115" for x in have("ping")} == self.addresses("?port=9115"),
            "ping",
        )
        self.assertEqual(2 * len(servers), len(have("ipv6")))
        for target in self.prometheus.targets("ipv6"):
            self.assertRegex(target["scrapeUrl"], r"^http://\[fd00:[\da-f:]+\]:9\d{3}/")
        self.assertEqual(set(), have("nobody") | have("wrong"))
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
        told = {
            k: v for k, v in client["discoveredLabels"].items() if k.startswith(META)
        }
        self.assertEqual(router["labels"], told)

    def test_relabelling(self) -> None:
        """The documented rules have the documented results."""
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

    def test_outage(self) -> None:
        """Without NetBird the targets stay, and the failures are counted."""
        have = self.prometheus.instances
        until(lambda: len(have("netbird-client")) > 80, "the targets")
        before = have("netbird-client"), have("node")
        failures = self.prometheus.failures()
        self.upstream.kill()
        until(lambda: get(self.url("?port=1"))[0] == 503, "the end of the list", 120)
        line = get(self.url("?port=1"))[2].decode()
        self.assertRegex(
            line, r"^the (peers|groups) are unknown: last refresh \d+ s ago"
        )
        before = have("netbird-client"), have("node")
        begun = self.prometheus.failures()
        self.assertGreaterEqual(begun, failures)
        until(lambda: self.prometheus.failures() > begun + 10, "failures")
        self.assertEqual(before, (have("netbird-client"), have("node")))
        self.assertGreater(len(before[0]), 80)

    def test_promtool(self) -> None:
        """The tool that checks configurations finds the same targets as we tell."""
        tool = program("promtool")
        file = str(self.prometheus.file)
        checked = subprocess.run(
            [tool, "check", "config", file], capture_output=True, check=False
        )
        self.assertEqual(0, checked.returncode)
        for job, query in (
            ("node", "?port=9100&group=servers"),
            ("ping", "?port=9115"),
            ("netbird-client", "?port=9191"),
        ):
            found = subprocess.run(
                [tool, "check", "service-discovery", "--timeout=30s", file, job],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(0, found.returncode, found.stderr)
            discovered = {
                target["labels"]["peer_id"] for target in json.loads(found.stdout)
            }
            listed = {x["labels"][f"{META}peer_id"] for x in self.listed(query)}
            # Runners may appear or disappear between the two.
            self.assertLess(len(discovered ^ listed), 3, job)
            self.assertGreater(len(discovered), 10)


LIST = b'[{"targets":["10.0.0.1:1"],"labels":{"a":"b"}}]'
JSON = "application/json"

ANSWERS: tuple[tuple[str, int, str, bytes, int], ...] = (
    # what, status, type, body, targets
    ("good", 200, JSON, LIST, 1),
    ("empty", 200, JSON, b"[]", 0),
    ("in lines", 200, JSON, b'[\n{"targets":["a:1"]},\n{"targets":["b:1"]}\n]\n', 2),
    ("charset", 200, "application/json; charset=UTF-8", LIST, 1),
    ("the same twice", 200, JSON, LIST[:-1] + b"," + LIST[1:], 1),
    ("several in one", 200, JSON, b'[{"targets":["a:1","b:1"],"labels":{}}]', 2),
    ("any text", 200, JSON, LIST.replace(b'b"', '\u2028\\u0000\\"<é"'.encode()), 1),
    ("accepted", 202, JSON, LIST, 0),
    ("no content", 204, JSON, b"", 0),
    ("not modified", 304, JSON, b"", 0),
    ("wrong", 400, JSON, LIST, 0),
    ("forbidden", 403, JSON, LIST, 0),
    ("not there", 404, JSON, LIST, 0),
    ("broken", 500, JSON, LIST, 0),
    ("unknown", 503, JSON, LIST, 0),
    ("html", 200, "text/html", LIST, 0),
    ("plain", 200, "text/plain; charset=utf-8", LIST, 0),
    ("other charset", 200, "application/json; charset=latin-1", LIST, 0),
    ("problem", 200, "application/problem+json", LIST, 0),
    ("no type", 200, "", LIST, 0),
    ("nothing", 200, JSON, b"", 0),
    ("object", 200, JSON, b'{"targets":["a:1"]}', 0),
    ("cut", 200, JSON, LIST[:-1], 0),
    ("two lists", 200, JSON, LIST + LIST, 0),
    ("comma", 200, JSON, LIST[:-1] + b",]", 0),
    ("unknown key", 200, JSON, b'[{"targets":["a:1"],"labels":{},"extra":1}]', 0),
    ("null group", 200, JSON, LIST[:-1] + b",null]", 0),
    ("number", 200, JSON, b'[{"targets":["a:1"],"labels":{"a":1}}]', 0),
    ("yes or no", 200, JSON, b'[{"targets":["a:1"],"labels":{"a":true}}]', 0),
    ("list as label", 200, JSON, b'[{"targets":["a:1"],"labels":{"a":["b"]}}]', 0),
    # Prometheus 2 refuses "a-b" too, which 3 takes.
    ("label name", 200, JSON, b'[{"targets":["a:1"],"labels":{"":"c"}}]', 0),
    ("number as target", 200, JSON, b'[{"targets":[1],"labels":{}}]', 0),
    ("text as targets", 200, JSON, b'[{"targets":"a:1","labels":{}}]', 0),
    ("path", 200, JSON, b'[{"targets":["a:1/metrics"],"labels":{}}]', 0),
)  # fmt: skip
"""Answers that Prometheus accepts, and all answers that it refuses."""


class Answering(BaseHTTPRequestHandler):
    """Answers a path by its number in the table."""

    def do_GET(self) -> None:
        _, status, kind, body, _ = ANSWERS[int(self.path[1:])]
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - likewise
        """Say nothing."""


class RefusalTests(TestCase):
    timeout = 120

    def test_table(self) -> None:
        """Prometheus takes what we send and refuses all that we never do."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        Thread(target=partial(server.serve_forever, 0.05), daemon=True).start()
        jobs = [
            f"- job_name: {what}\n  http_sd_configs:\n"
            f"  - url: http://127.0.0.1:{server.server_port}/{number}\n"
            for number, (what, *_) in enumerate(ANSWERS)
        ]
        directory = Path(self.mktemp())
        directory.mkdir(parents=True)
        text = GLOBAL + "scrape_configs:\n" + "".join(jobs)
        prometheus = Prometheus(self, directory, text)
        for what, _, _, _, targets in ANSWERS:
            if targets:
                until(partial(prometheus.has, what, targets), what)
        refused = sum(not targets for *_, targets in ANSWERS) - len(("empty", "path"))
        # There are more if a list was requested again in the meantime.
        until(lambda: prometheus.failures() >= refused, "as many failures as refusals")
        found = {what: len(prometheus.targets(what)) for what, *_ in ANSWERS}
        self.assertEqual({what: targets for what, *_, targets in ANSWERS}, found)

"""The recipes of docs/integrations.md, with real answers."""

import csv
import json
import re
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import yaml

from tests.deploy.programs import blocks
from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import ROOT, get, serve, until

EXPORTER = "http://exporter.example:8080"
NTFY = "https://ntfy.example/netbird"

DOCUMENT = (ROOT / "docs/integrations.md").read_text(encoding="utf-8")


class Mailbox(HTTPServer):
    """A server that collects what is posted, but for what it refuses."""

    def __init__(self) -> None:
        self.posted: list[str] = []
        self.refused: set[str] = set()
        mailbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                text = self.rfile.read(length).decode()
                if text not in mailbox.refused:
                    mailbox.posted.append(text)
                self.send_response(503 if text in mailbox.refused else 200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)


class RecipesTests(ExporterTestCase):
    timeout = 120

    def test_recipes(self) -> None:
        """All recipes hold for one running exporter."""
        thresholds = self.directory / "thresholds.json"
        thresholds.write_text(
            '{"severities":{"NetBirdImportantPeerOffline":"critical"}}'
        )
        environ = self.settings(
            IMPORTANT_GROUPS="servers", LOOKUP="true", THRESHOLDS_FILE=str(thresholds)
        )
        self.started((), environ, "", "/health")
        self.here = self.url("/").rstrip("/")
        until(self.is_known, "the first refreshes")
        self.assert_paths()
        self.assert_tables()
        self.assert_commands()

    def is_known(self) -> bool:
        self.status = json.loads(get(self.url("/status.json"))[2])
        [account] = self.status["accounts"]
        known = account["token_expires_at"] and account["finding_counts"]
        return bool(known and not account["unchecked"])

    def value(self, path: str) -> Any:
        """Return the value at a path such as `accounts[0].text`; fail without one."""
        found: Any = self.status
        for key in re.findall(r"\w+", path.removeprefix("$.")):
            found = found[int(key)] if key.isdigit() else found[key]
        return found

    def section(self, name: str) -> Any:
        """Return the YAML after a program's name."""
        [text] = re.findall(rf"\*\*{name}\*\*.*?```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
        return yaml.safe_load(text)

    def assert_paths(self) -> None:
        """Each path in a recipe for a dashboard or a monitor leads to a value."""
        for url in re.findall(rf"{EXPORTER}(/[\w.]+)", DOCUMENT):
            if url != "/lookup":
                self.assertEqual(200, get(self.here + url)[0], url)
        [rest] = self.section("Home Assistant")["rest"]
        for sensor in rest["sensor"]:
            for path in re.findall(r"value_json\.([\w.\[\]]+)", str(sensor)):
                self.assertIsNotNone(self.value(path), path)
            for name in sensor.get("json_attributes", ()):
                self.assertIsInstance(self.value(name), str)
        for mapping in self.section("homepage")["widget"]["mappings"]:
            path, field = "", mapping["field"]
            while isinstance(field, dict):
                [(key, field)] = field.items()
                path += f"{key}."
            kind = int if mapping.get("format") == "number" else str
            self.assertIsInstance(self.value(path + field), kind)
        [widget] = self.section("Glance")
        kinds = {"String": str, "Int": int, "Array": list}
        used = re.findall(r'\.JSON\.(\w+) "([\w.]+)"', widget["template"])
        self.assertEqual(4, len(used))
        for kind, path in used:
            self.assertIsInstance(self.value(path), kinds[kind])
        self.assertIn("sentence", self.value("accounts.0.findings.0"))
        master, *items = self.section("Zabbix")["items"]
        for item in items:
            self.assertEqual(master["key"], item["master_item"]["key"])
            [path] = item["preprocessing"][0]["parameters"]
            self.assertIsNotNone(self.value(path), path)
        [group] = self.value("accounts[0].groups")
        self.assertIn(f'groups[name="{group["name"]}"].peers.offline', DOCUMENT)
        self.assertIsInstance(group["peers"]["offline"], int)

    def assert_tables(self) -> None:
        """Each column that Vector and Splunk use is in the table."""
        text = get(self.url("/lookup.csv"))[2].decode()
        columns, *rows = csv.reader(text.splitlines(), strict=True)
        self.assertLess(40, len(rows))
        source = self.section("Vector")["transforms"]["who"]["source"]
        keys, given = re.findall(r'\{"(\w+)": [^}]+\}, (\[.*?\])', source)[0]
        used = {keys, *json.loads(given), *re.findall(r"peer\.(\w+)", source)}
        [splunk] = re.findall(r"LOOKUP-\w+ = \w+ (.*)", DOCUMENT)
        used |= set(re.findall(r"(\w+) AS", splunk))
        self.assertEqual(set(), used - set(columns))

    def assert_commands(self) -> None:
        """The commands work with curl and jq, and tell each finding once, also after
        a failure.
        """
        mailbox = Mailbox()
        serve(self, mailbox)
        peer = json.loads(get(self.url("/lookup.json"))[2])[0]
        findings = self.value("accounts.0.findings")
        sentences = sorted(
            f["sentence"] for f in findings if f["severity"] == "critical"
        )
        self.assertNotEqual([], sentences)
        alerts, lookup, files = blocks("integrations.md", "sh")
        alerts = alerts.replace(NTFY, f"http://127.0.0.1:{mailbox.server_port}")
        mailbox.refused = {sentences[0]}
        self.assertIn("503", self.run_shell(f"({alerts}) 2>&1"))
        mailbox.refused = set()
        for _ in range(2):
            self.run_shell(alerts)
        self.assertEqual([*sentences[1:], sentences[0]], mailbox.posted)
        shown = json.loads(
            self.run_shell(lookup.replace("100.64.0.7", peer["address"]))
        )
        self.assertEqual([peer["peer"], peer["groups"], peer["os"]], shown)
        self.run_shell(files)
        written = (self.directory / "peers.csv").read_bytes()
        self.assertEqual(get(self.url("/lookup.csv"))[2], written)
        listed = (self.directory / "netbird-peers").read_text()
        self.assertIn(f"{peer['address']}:{peer['peer_id']}\n", listed)

    def run_shell(self, script: str) -> str:
        """Run a script of the document in the test's folder."""
        done = subprocess.run(
            ["sh", "-e", "-c", script.replace(EXPORTER, self.here)],
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout

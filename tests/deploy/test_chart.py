"""The Helm chart, as far as it can be checked without helm."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from twisted.trial.unittest import SynchronousTestCase

from api_exporter._version import __version__
from api_exporter.settings.definitions import SETTINGS
from tests.deploy.addresses import addresses
from tools.chart import CHART, LINKS, OWN, SCHEMA, VALUES, schema
from tools.prometheus import ROOT, THRESHOLDS

TEMPLATES = "".join(
    path.read_text() for path in sorted((CHART / "templates").rglob("*.*"))
)
"""The text of all templates."""

DEFAULTS: dict[str, Any] = yaml.safe_load(VALUES.read_text())


PASSED_ON = {
    *("labels", "livenessProbe", "podSecurityContext", "readinessProbe", "resources"),
    "securityContext",
}
"""Values that the templates pass on as a whole."""


def names(values: dict[str, Any]) -> Iterator[str]:
    """Yield the name of each value, and of those inside of it."""
    for name, value in values.items():
        yield name
        if isinstance(value, dict) and name not in PASSED_ON:
            yield from names(value)


class ChartTests(SynchronousTestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.schema = json.loads(SCHEMA.read_text())

    def test_fresh(self) -> None:
        """Generated and shared files are up to date (`python -m tools.chart`)."""
        self.assertEqual(schema().split("\n"), SCHEMA.read_text().split("\n"))
        found = {path for path in (CHART / "files").rglob("*") if path.is_file()}
        self.assertEqual(set(LINKS), found)
        for link, leads_to in LINKS.items():
            self.assertEqual(leads_to.read_text(), link.read_text(), link)

    def test_hub(self) -> None:
        """The chart has the program's version, images and icon."""
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        version = __version__.public()
        self.assertEqual(version, chart["appVersion"])
        self.assertEqual(version.replace(".dev", "-dev"), chart["version"])
        told = {
            name.partition("/")[2]: yaml.safe_load(text)
            for name, text in chart["annotations"].items()
        }
        kinds = {"added", "changed", "deprecated", "removed", "fixed", "security"}
        for change in told["changes"]:
            self.assertIn(change["kind"], kinds)
            self.assertTrue(change["description"])
        image = DEFAULTS["image"]
        own = f"{image['registry']}/{image['repository']}:{version}"
        found = [one["image"] for one in told["images"]]
        self.assertEqual([own], found)
        for link in told["links"]:
            self.assertEqual({"name", "url"}, {*link})
        icon = (ROOT / "docs/images/icon.svg").read_bytes().strip()
        kind, _, content = chart["icon"].partition(",")
        self.assertEqual("data:image/svg+xml;base64", kind)
        self.assertEqual(icon, b64decode(content))

    def test_settings(self) -> None:
        """The chart sets only settings, and all others are values."""
        found = set(re.findall(r"- name: ([A-Z][A-Z_]+)$", TEMPLATES, re.MULTILINE))
        known = {setting.name for setting in SETTINGS}
        self.assertEqual(known & found, found)
        self.assertEqual(OWN - {"UPSTREAM_API_TOKEN"} | {"UPSTREAM_API_URL"}, found)
        others = set(self.schema["$defs"]["settings"]["properties"])
        self.assertEqual(known - found - {"UPSTREAM_API_TOKEN"}, others)

    def test_thresholds(self) -> None:
        """The schema knows each threshold, and settings of an account."""
        shipped = json.loads(THRESHOLDS.read_text())
        numbers = {"requests": {"logins_refused": 50}, "dollars": {"agent_month": 0.5}}
        for thresholds in (shipped, numbers):
            account = {"settings": {"PEER_DETAIL": "none", "API_RETRY_ATTEMPTS": 2}}
            values = {"thresholds": thresholds, "account": account}
            properties = {name: {"$ref": f"#/$defs/{name}"} for name in values}
            schema = {"$defs": self.schema["$defs"], "properties": properties}
            self.assertEqual([], [*Draft202012Validator(schema).iter_errors(values)])

    def test_used(self) -> None:
        """Each value is read by a template."""
        for name in names(DEFAULTS):
            self.assertRegex(TEMPLATES, rf'\.{name}\b|"{name}"', name)
        template = (CHART / "templates/_names.tpl").read_text()
        self.assertIn('| compact | join "/"', template)
        self.assertNotIn("}}/{{", template)

    def test_defaults(self) -> None:
        """The default image is the published one, without any privilege."""
        image = DEFAULTS["image"]
        self.assertEqual(
            addresses()["IMAGE"], f"{image['registry']}/{image['repository']}"
        )
        self.assertEqual(
            {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            DEFAULTS["securityContext"],
        )
        self.assertTrue(DEFAULTS["podSecurityContext"]["runAsNonRoot"])
        address = f"oci://{addresses()['CHART']}"
        page = (ROOT / "docs/install/helm.md").read_text()
        self.assertIn(f"helm install api-exporter {address}", page)
        self.assertIn(address, (CHART / "README.md").read_text())

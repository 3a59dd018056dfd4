"""Texts that the Helm chart has of others: `python -m tools.chart` writes them.

The schema names the settings and the alerts. It is committed; a test fails if it is
stale. Rules, thresholds and dashboards are links, which Helm follows when it reads or
packs the chart.
"""

import json
import os
import re

from api_exporter.attention.thresholds import default_thresholds
from api_exporter.netbird.records import CHOICES
from api_exporter.settings.definitions import ACCOUNT_SETTINGS, SETTINGS
from api_exporter.settings.setting import Setting
from tools.json_text import json_text
from tools.prometheus import ALERTS, ROOT, RULES, THRESHOLDS, add_severities

CHART = ROOT / "deploy/helm/api-exporter"

VALUES = CHART / "values.yaml"

SCHEMA = CHART / "values.schema.json"

OWN = {
    *("ACCOUNTS_DIR", "LISTEN_ADDRESS", "SHARD", "THRESHOLDS_FILE", "WEB_CONFIG_FILE"),
    *("UPSTREAM_API_TOKEN", "UPSTREAM_API_TOKEN_FILE", "WEB_BEARER_TOKENS_FILE"),
    *("UPSTREAM_CA_FILE", "UPSTREAM_CLIENT_CERT_FILE", "UPSTREAM_CLIENT_KEY_FILE"),
}
"""Settings that the chart sets itself, or that are secret: no values of their own."""

ADDRESS = "UPSTREAM_API_URL"
"""The setting that is a value for all accounts, and a setting in an account's file."""

OF_FILES = {"UPSTREAM_CA_FILE", "UPSTREAM_CLIENT_CERT_FILE", "UPSTREAM_CLIENT_KEY_FILE"}
"""Settings without a value that the file of an account may contain."""


_NUMBERS = {
    "hours": "whole",
    "days": "whole",
    "peers": "whole",
    "shares": "share",
    "dollars": "dollars",
    "requests": "requests",
}
"""The definition of the numbers in each table of the thresholds."""


def schema() -> str:
    """Return the schema with the current names."""
    found = json.loads(SCHEMA.read_text(encoding="utf-8"))
    thresholds = default_thresholds()
    own = found["$defs"]
    settings = {s.name: s for s in SETTINGS}
    both = [name for name in settings if name not in OWN | {ADDRESS}]
    of_account = [s.name for s in ACCOUNT_SETTINGS if s.name not in OWN - OF_FILES]
    own["settings"]["properties"] = {name: _property(settings[name]) for name in both}
    own["accountSettings"]["properties"] = {
        name: _property(settings[name]) for name in of_account
    }
    names = re.findall(r"- alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
    own["alert"]["enum"] = names
    tables = own["thresholds"]["properties"]
    severity = {"$ref": "#/$defs/severity"}
    tables["severities"]["properties"] = dict.fromkeys(thresholds.severities, severity)
    tables["settings"]["properties"] = {name: {"type": "boolean"} for name in CHOICES}
    for table, kind in _NUMBERS.items():
        one = {"$ref": f"#/$defs/{kind}"}
        known = getattr(thresholds, table)
        tables[table]["properties"] = dict.fromkeys(known, one)
    return json_text(found) + "\n"


def _property(setting: Setting) -> dict[str, str]:
    kind = "address" if setting.secret else "setting"
    return {"$ref": f"#/$defs/{kind}"}


DASHBOARDS = sorted((ROOT / "deploy/grafana/dashboards").glob("*.json"))

LINKS = {
    **{CHART / "files" / path.name: path for path in (THRESHOLDS, RULES, ALERTS)},
    **{CHART / "files/dashboards" / path.name: path for path in DASHBOARDS},
}
"""Where the links in the chart's folder `files` lead. A source distribution has copies
in their place, and no links to folders.
"""

if __name__ == "__main__":
    add_severities()
    SCHEMA.write_text(schema(), encoding="utf-8")
    for link, leads_to in LINKS.items():
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(leads_to, link.parent))

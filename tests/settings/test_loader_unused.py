"""All pairs of settings: both work, or an error or a warning names one of them."""

import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.refresh.request_plans import request_plans
from api_exporter.settings.definitions import (
    ACCESS_SECTION,
    SECTIONS,
    SETTINGS,
    Settings,
)
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.loader import unused_warnings
from api_exporter.settings.setting import Setting
from api_exporter.subjects.table import COLLECTORS, RESOURCE_BY_NAME
from tests.authority import Authority, written
from tests.inventories import inventory_of

REQUIRED = {"UPSTREAM_API_URL": "https://api.example", "UPSTREAM_API_TOKEN": "secret"}

RESOURCES = {
    "EVENTS_FILE": "events",
    "ACCESS_LOG_FILE": "access_log",
    "ACCESS_LOG_METRICS": "access_log",
    "IMPORTANT_GROUPS": "groups",
    "PEER_DETAIL": "groups",
}
"""The resource that must be requested for a setting."""

ALTERNATIVES = {
    "EVENTS_CURSOR_FILE": {"EVENTS_FILE"},
    "ACCESS_LOG_CURSOR_FILE": {"ACCESS_LOG_FILE"},
    "ACCESS_LOG_REQUESTS_PER_MINUTE": {"ACCESS_LOG_FILE", "ACCESS_LOG_METRICS"},
    "WEB_OPEN_PATHS": {s.name for s in SECTIONS[ACCESS_SECTION]} - {"WEB_OPEN_PATHS"},
}
"""Settings of which one is required, so that a setting has an effect."""

EXAMPLE = re.compile(r"(?:such as|one of|from) ([^\s,]+)|(true) or false")
"""An example in the words that say what is allowed."""

WITHOUT = {"METRICS_DENY", "UPSTREAM_API_TOKEN"}
"""Settings without an example: the first needs names of metrics."""


def example(setting: Setting, folder: Path) -> str:
    """Return the example in the words of a setting; a file, if it is one."""
    if setting.is_path:
        return written(folder, setting.name.lower(), b"")
    found = EXAMPLE.search(setting.allowed)
    assert found is not None, f"{setting.name}: add an example: such as ..."
    return found[1] or found[2]


def examples(folder: Path) -> list[tuple[str, str]]:
    """Return values of each setting, and all values that switch something off."""
    issued = Authority("persons").issue("exporter")
    (folder / "accounts").mkdir()
    thresholds = b'{"days": {"certificate_soon": 3}}'
    found = [
        ("UPSTREAM_API_URL", "http://api.example"),
        ("UPSTREAM_API_TOKEN_FILE", written(folder, "token", b"secret")),
        ("HTTP_TIMEOUT", "10s"),
        ("API_RETRY_ATTEMPTS", "1"),
        ("UPSTREAM_ACCOUNT", "other"),
        ("UPSTREAM_RATE_LIMIT", "1/1"),
        ("UPSTREAM_PROXY", "http://proxy.example:3128"),
        ("UPSTREAM_CLIENT_CERT_FILE", written(folder, "both", issued.pem + issued.key)),
        ("UPSTREAM_CLIENT_KEY_FILE", written(folder, "key", issued.key)),
        ("UPSTREAM_CA_FILE", written(folder, "ca", issued.pem)),
        ("METRICS_MAX_AGE", "1m"),
        ("PAGE_MAX_BYTES", "1"),
        ("EXPOSE_PERSONAL_DATA", "true"),
        ("PEER_DETAIL", "groups:a"),
        ("IMPORTANT_GROUPS", "a"),
        ("EVENTS_FILE", f"{folder}/events"),
        ("EVENTS_FILE", "-"),
        ("EVENTS_CURSOR_FILE", f"{folder}/events.position"),
        ("ACCESS_LOG_FILE", f"{folder}/access"),
        ("ACCESS_LOG_CURSOR_FILE", f"{folder}/access.position"),
        ("ACCESS_LOG_METRICS", "true"),
        ("ACCESS_LOG_REQUESTS_PER_MINUTE", "5"),
        ("THRESHOLDS_FILE", written(folder, "thresholds", thresholds)),
        ("RUNBOOKS_URL", "https://wiki.example/netbird"),
        ("LISTEN_ADDRESS", "unix:/run/x.sock"),
        ("METRICS_PATH", "/other"),
        ("MAX_CONNECTIONS", "1"),
        ("WEB_CONFIG_FILE", written(folder, "web", b"")),
        ("WEB_BEARER_TOKENS_FILE", written(folder, "bearer", b"a" * 32)),
        ("WEB_OPEN_PATHS", "/sd"),
        ("LOG_LEVEL", "error"),
        ("LOG_FORMAT", "json"),
        ("ACCOUNTS_DIR", f"{folder}/accounts"),
        ("SHARD", "0/2"),
        ("DEMO_PEERS", "1"),
        ("DEMO_ACCOUNTS", "3"),
        ("DEMO_FAULT", "outage"),
    ]
    found += [("COLLECTORS", collector.name) for collector in COLLECTORS]
    for resource in RESOURCE_BY_NAME:
        found += [("REFRESH_INTERVALS", f"{resource}={x}") for x in ("1m", "off")]
    named = {name for name, _ in found} | WITHOUT
    others = [setting for setting in SETTINGS if setting.name not in named]
    return found + [(s.name, example(s, folder)) for s in others]


class OtherEffectTests(SynchronousTestCase):
    def lines(self, **settings: str) -> list[str]:
        return list(unused_warnings(read_settings({**REQUIRED, **settings})))

    def test_max_age(self) -> None:
        """Metrics live for at least 45 seconds; a shorter age has a warning."""
        line = "METRICS_MAX_AGE: 10s is too short: metrics expire after 45s or later"
        for text, lines in (("10s", [line]), ("45s", []), ("1h", [])):
            self.assertEqual(lines, self.lines(METRICS_MAX_AGE=text))

    def test_no_metrics(self) -> None:
        """A warning says that no metric of the network is left."""
        line = "METRICS_DENY leaves out all metrics of the network"
        for more, lines in (
            ({"METRICS_DENY": "*"}, [line]),
            ({"METRICS_DENY": "netbird_api_setup_key*"}, []),
            ({"METRICS_DENY": "*_setup_key*", "COLLECTORS": "setup_keys"}, [line]),
        ):
            self.assertEqual(lines, self.lines(**more), more)

    def test_one_with_metrics(self) -> None:
        """One account with metrics is enough."""
        accounts = Path(self.mktemp()).absolute()
        accounts.mkdir()
        for name, deny in (("a", "*"), ("b", "netbird_api_setup_key*")):
            text = f"UPSTREAM_API_TOKEN={name}\nMETRICS_DENY='{deny}'\n"
            (accounts / f"{name}.conf").write_text(text)
        url = {"UPSTREAM_API_URL": "https://a.example", "ACCOUNTS_DIR": str(accounts)}
        self.assertEqual([], [*unused_warnings(read_settings(url))])


class PairsTests(SynchronousTestCase):
    def test_pairs(self) -> None:
        """No setting silently switches off what another setting needs."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        judged = 0
        for (one, first), (other, second) in combinations(examples(folder), 2):
            if one == other:
                continue
            given = {one: first, other: second}
            environ = {**REQUIRED, **given}
            if "UPSTREAM_API_TOKEN_FILE" in given:
                del environ["UPSTREAM_API_TOKEN"]
            try:
                settings = read_settings(environ)
            except ConfigurationError as error:
                self.assertTrue(one in str(error) or other in str(error), given)
                continue
            judged += 1
            self.judge(given, settings)
        self.assertGreater(judged, 2000)

    def judge(self, given: Mapping[str, str], settings: Settings) -> None:
        """Judge a pair that is not refused."""
        lines = list(unused_warnings(settings))
        for name, alternatives in ALTERNATIVES.items():
            idle = name in given and not alternatives & given.keys()
            named = [line for line in lines if line.startswith(f"{name} has no effect")]
            self.assertEqual(int(idle), len(named), (given, lines))
        found = request_plans(settings.accounts.values())
        requested = {r.name: r for r in found[""].selection.resources}
        for name, resource in RESOURCES.items():
            if name in given:
                self.assertIn(resource, requested, given)
                self.assertIsNotNone(
                    requested[resource].request_path(inventory_of(), 0.0)
                )
        name, _, interval = given.get("REFRESH_INTERVALS", "").partition("=")
        if name and interval != "off" and name != CURRENT_USER:
            idle = f"REFRESH_INTERVALS: {name} has no effect" in str(lines)
            self.assertEqual(idle, name not in requested, given)
        plain = given.get("UPSTREAM_API_URL", "https").startswith("http:")
        for name in ("UPSTREAM_CLIENT_CERT_FILE", "UPSTREAM_CA_FILE"):
            if name in given:
                named = [line for line in lines if line.startswith(f"{name} has no")]
                self.assertEqual(int(plain), len(named), (given, lines))

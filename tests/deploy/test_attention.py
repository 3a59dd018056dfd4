"""Alerts and findings use the same thresholds for one network."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.rules import rules
from api_exporter.attention.thresholds import Groups, Thresholds, default_thresholds
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    AccessToken,
    NetBirdAccount,
    NetBirdSettings,
    NetworkResource,
    Peer,
    ProxyToken,
    SetupKey,
    User,
)
from tests.attention.looking import DAY, HOUR, NOW, at, findings, group, peer, seen
from tests.collectors.samples import page
from tests.integration.programs import program

EVALUATED = 7
"""Hours of an unchanged network, after which no alert is pending."""

MARGIN = 2 * HOUR
"""Seconds between a value and its threshold."""

USES = 1000

LIFETIME = 30 * 86400
"""Seconds for which a login is valid."""


def network(thresholds: Thresholds, side: int) -> Inventory:
    """Return a network with all values on one side of their thresholds. `side` is 1 for
    values that cause alerts, else -1.
    """
    days, shares = thresholds.days, thresholds.shares

    def ends(name: str) -> object:
        return at(days[name] * DAY - side * MARGIN)

    limit = min(days["login_soon"] * DAY, shares["login_soon"] * LIFETIME)
    in_use = at(-days["in_use"] * DAY + side * MARGIN)
    room = 62
    taken = int(shares["addresses_used"] * room) + (side + 1) // 2
    peers = tuple(
        Peer(
            id=f"p{number}",
            name=f"p{number}",
            connected=True,
            user_id="u",
            login_expiration_enabled=True,
            last_login=at(limit - LIFETIME - side * MARGIN),
        )
        for number in range(taken)
    )
    key = SetupKey(id="", type="reusable", state="valid", last_used=at(0))
    spent = round(USES * shares["setup_key_used"]) - (1 - side) // 2
    tokens = [
        AccessToken(
            id=name,
            expiration_date=ends(name),  # type: ignore[arg-type]
            last_used=at(0),
        )
        for name in ("access_token_soon", "access_token_very_soon")
    ]
    settings = NetBirdSettings(
        network_range="10.0.0.0/26",
        peer_login_expiration_enabled=True,
        peer_login_expiration=LIFETIME,
    )
    return Inventory(
        peers=peers,
        groups=(group("servers", "p0"), group("routers", "p0")),
        users=(User(id="me", is_current=True, is_service_user=True),),
        accounts=(NetBirdAccount(id="a", settings=settings),),
        access_tokens=tuple(tokens),
        setup_keys=(
            replace(key, id="soon", expires=ends("setup_key_soon")),
            replace(key, id="idle", state="expired", expires=at(0), last_used=in_use),
            replace(key, id="spent", usage_limit=USES, used_times=spent),
        ),
        proxy_tokens=(
            ProxyToken(
                id="soon",
                expires_at=ends("proxy_token_soon"),  # type: ignore[arg-type]
                last_used=at(0),
            ),
            ProxyToken(id="idle", expires_at=at(DAY), last_used=in_use),
        ),
        network_resources=(NetworkResource(id="of no network", enabled=True),),
    )


class ThresholdsTests(SynchronousTestCase):
    def fired(self, inventory: Inventory, thresholds: Thresholds) -> Counter[str]:
        """Return the number of firing alerts of each name for some thresholds."""
        folder = Path(self.mktemp())
        folder.mkdir(parents=True)
        names = ["rules", "alerts"]
        for name in names:
            (folder / f"{name}.yml").write_text(rules(name, thresholds))
        series = []
        for line in page(inventory).splitlines():
            if match := re.fullmatch(r"([^ {]+)(\{.*\})? (\S+)", line):
                name, labels, value = match.groups()
                number = float(value)
                if name.endswith("_timestamp_seconds"):
                    number += EVALUATED * HOUR - NOW
                series.append(
                    {
                        "series": f"{name}{labels or '{}'}",
                        "values": f"{number:f}+0x{EVALUATED * 12}",
                    }
                )
        test: Mapping[str, object] = {
            "rule_files": [f"{name}.yml" for name in names],
            "evaluation_interval": "5m",
            "tests": [
                {
                    "interval": "5m",
                    "input_series": series,
                    "promql_expr_test": [
                        {
                            "expr": 'count by (alertname)(ALERTS{alertstate="firing"})',
                            "eval_time": f"{EVALUATED}h",
                        }
                    ],
                }
            ],
        }
        (folder / "test.yml").write_text(json.dumps(test))
        told = subprocess.run(
            [program("promtool"), "test", "rules", "test.yml"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        got = told.stdout + told.stderr
        self.assertNotIn("error", got.lower().replace('"error"', ""), got[:2000])
        pairs = re.findall(r'alertname="(\w+)"\} ([\d.eE+-]+)', got)
        return Counter({alert: int(float(count)) for alert, count in pairs})

    def test_same(self) -> None:
        """Alerts and findings agree on both sides of each threshold."""
        usual = default_thresholds()
        other = replace(
            usual,
            days={name: days + 3 for name, days in usual.days.items()},
            shares=usual.shares | {"addresses_used": 0.5, "setup_key_used": 0.6},
        )
        share = replace(usual, shares=usual.shares | {"login_soon": 0.02})
        told: list[Counter[str]] = []
        for thresholds in (usual, other, share):
            for side in (1, -1):
                inventory = network(thresholds, side)
                # None of the exporter's own metrics exists in this test.
                fired = self.fired(inventory, thresholds)
                del fired["ApiExporterDown"]
                found = findings(seen(inventory, thresholds=thresholds))
                self.assertEqual(fired, Counter(one.alert for one in found), side)
                told.append(fired)
        self.assertEqual(told[:2] * 2, told[2:])
        self.assertEqual(
            {
                "ApiExporterTokenExpiresSoon": 1,
                "ApiExporterTokenExpiresVerySoon": 1,
                "NetBirdAddressPoolNearlyFull": 1,
                "NetBirdLoginExpiresSoon": 1,
                "NetBirdProxyTokenExpiresSoon": 2,
                "NetBirdSetupKeyExpiresSoon": 2,
                "NetBirdSetupKeyUsedUp": 1,
            },
            told[0],
        )
        self.assertEqual({"ApiExporterTokenExpiresSoon": 1}, told[1])

    def test_groups(self) -> None:
        """Both find the named groups by name or id, and report missing ones."""
        inventory = Inventory(
            peers=(peer("up"), peer("down", connected=False)),
            groups=(
                group("servers", "up", "down"),
                group("databases", "down"),
                group("gates", "down"),
                group("laptops", "down"),
                group("routers", "up", "down", "of nobody"),
            ),
        )
        named = replace(
            default_thresholds(),
            groups=Groups(
                important=["servers", "g-databases", "gone"],
                routers=["routers", "g-gates", "g-gone"],
            ),
        )
        for thresholds, told in (
            (
                named,
                {
                    "NetBirdImportantGroupMissing": 2,
                    "NetBirdImportantPeerOffline": 2,
                    "NetBirdRouterGroupDown": 1,
                },
            ),
            (default_thresholds(), {}),
        ):
            fired = self.fired(inventory, thresholds)
            del fired["ApiExporterDown"]
            found = findings(seen(inventory, thresholds=thresholds))
            self.assertEqual(told, fired)
            self.assertEqual(told, Counter(one.alert for one in found))

"""The setup_keys collector."""

from datetime import UTC, datetime, timedelta

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import SetupKey
from tests.collectors.samples import Samples, scrape

NOON = datetime(2026, 5, 22, 12, 0, 0, 500_112, tzinfo=UTC)
LATER = NOON + timedelta(minutes=1)
ZERO = datetime(1, 1, 1, tzinfo=UTC)
RACK = '{setup_key_id="k1",setup_key="rack"}'


KNOWN = ("valid", "expired", "revoked", "overused")


def states(current: str, *each: str) -> list[str]:
    """Return the samples of a key in this state."""
    return [f'{RACK[:-1]},state="{s}"}} {int(s == current)}' for s in each]


def of(*keys: SetupKey) -> Samples:
    return scrape("setup_keys", Inventory(setup_keys=keys))


class SetupKeysTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown or missing keys have no series."""
        self.assertEqual({}, scrape("setup_keys", Inventory()))
        self.assertEqual({}, of())

    def test_counts(self) -> None:
        """Keys are counted by type, state and kind of peers, as NetBird sends them."""
        self.assertEqual(
            [
                '{key_type="",state="",ephemeral="false"} 1',
                '{key_type="one-off",state="expired",ephemeral="false"} 1',
                '{key_type="one-off",state="overused",ephemeral="false"} 1',
                '{key_type="quantum",state="entangled",ephemeral="false"} 1',
                '{key_type="reusable",state="revoked",ephemeral="false"} 1',
                '{key_type="reusable",state="valid",ephemeral="false"} 1',
                '{key_type="reusable",state="valid",ephemeral="true"} 2',
            ],
            of(
                SetupKey(id="1", type="reusable", state="valid"),
                SetupKey(id="2", type="reusable", state="valid", ephemeral=True),
                SetupKey(id="3", type="reusable", state="valid", ephemeral=True),
                SetupKey(id="4", type="one-off", state="expired"),
                SetupKey(id="5", type="reusable", state="revoked"),
                SetupKey(id="6", type="one-off", state="overused"),
                SetupKey(id="7", type="quantum", state="entangled"),
                SetupKey(id="8"),
            )["setup_keys"],
        )

    def test_one_key(self) -> None:
        """All properties of a key but its secret have series."""
        key = SetupKey(
            id="k1",
            name="rack",
            type="reusable",
            state="valid",
            valid=True,
            ephemeral=True,
            used_times=9,
            usage_limit=10,
            expires=NOON,
            last_used=LATER,
            auto_groups=("a", "b"),
        )
        self.assertEqual(
            {
                "setup_keys": [
                    '{key_type="reusable",state="valid",ephemeral="true"} 1'
                ],
                "setup_key_info": [
                    (
                        '{setup_key_id="k1",setup_key="rack",key_type="reusable",'
                        'ephemeral="true"} 1'
                    )
                ],
                "setup_key_valid": [f"{RACK} 1"],
                "setup_key_expiration_timestamp_seconds": [f"{RACK} 1779451200.500112"],
                "setup_key_last_used_timestamp_seconds": [f"{RACK} 1779451260.500112"],
                "setup_key_auto_groups": [f"{RACK} 2"],
                "setup_key_used_times": [f"{RACK} 9"],
                "setup_key_usage_limit": [f"{RACK} 10"],
                "setup_key_state": states("valid", *KNOWN),
            },
            of(key),
        )

    def test_never(self) -> None:
        """A key that never expires, is unused and unlimited has no such series."""
        for never in (None, ZERO):
            families = of(
                SetupKey(id="k1", name="rack", expires=never, last_used=never)
            )
            self.assertEqual([f"{RACK} 0"], families.pop("setup_key_valid"))
            self.assertEqual([f"{RACK} 0"], families.pop("setup_key_auto_groups"))
            self.assertEqual([f"{RACK} 0"], families.pop("setup_key_used_times"))
            self.assertEqual(states("", *KNOWN), families.pop("setup_key_state"))
            self.assertEqual({"setup_keys", "setup_key_info"}, set(families))

    def test_state(self) -> None:
        """A key has a series for each known state and for its own."""
        for state, each in (
            ("expired", KNOWN),
            ("", KNOWN),
            ("entangled", (*KNOWN, "entangled")),
        ):
            key = SetupKey(id="k1", name="rack", state=state)
            self.assertEqual(states(state, *each), of(key)["setup_key_state"])

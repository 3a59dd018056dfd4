"""Findings about setup keys appear, stay away, and end; states of keys."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.subjects.setup_keys import STATES, SetupKey
from tests.attention.looking import DAY, FindingsTestCase, at
from tests.collectors.samples import page, parsed
from tests.inventories import inventory_of


class SetupKeysExpiryTests(FindingsTestCase):
    def key(self, **fields: object) -> Inventory:
        """Return a setup key, and one that never has a finding."""
        key = SetupKey(id="k", name="fleet", type="reusable", state="valid")
        single = SetupKey(id="o", type="one-off", state="valid")
        return inventory_of(setup_keys=(single, replace(key, **fields)))

    def test_setup_key(self) -> None:
        """A reusable key in use is a finding from a day before its expiry."""
        soon, used = at(DAY - 1), at(-7 * DAY + 1)
        for expires, state, words, time in (
            (soon, "valid", "expires soon", "until 86399"),
            (soon, "overused", "expires soon", "until 86399"),
            (used, "expired", "has expired", "since -604799"),
            (at(0), "expired", "has expired", "since 0"),
        ):
            self.tells(
                self.key(expires=expires, state=state, last_used=used),
                f"NetBirdSetupKeyExpiresSoon: Setup key fleet {words}: machines used"
                f" this key recently. ({time})",
            )
        for fields in (
            {"expires": at(DAY), "last_used": used},
            {"expires": soon, "last_used": used, "type": "one-off"},
            {"expires": soon},
            {"expires": soon, "last_used": at(-7 * DAY)},
            {"expires": soon, "last_used": used, "state": "revoked"},
            {"expires": at(0), "last_used": used, "state": "expired", "revoked": True},
            {"last_used": used},
            # A new key with the dashboard's seven days.
            {"expires": at(7 * DAY), "last_used": at(0)},
        ):
            self.tells(self.key(**fields))

    def test_used_up(self) -> None:
        """A key is a finding when four fifths of its uses are spent."""
        for limit, used, words in (
            (10, 8, "nearly used up: 8 of 10 uses."),
            (10, 10, "used up: 10 of 10 uses."),
            (1, 1, "used up: 1 of 1 use."),
        ):
            line = f"NetBirdSetupKeyNearlyUsedUp: Setup key fleet is {words}"
            self.tells(self.key(usage_limit=limit, used_times=used), line)
            spent = self.key(
                usage_limit=limit, used_times=used, state="overused", last_used=at(-60)
            )
            self.tells(spent, f"{line} (since -60)")
        for fields in (
            {"usage_limit": 10, "used_times": 7},
            {"usage_limit": 0, "used_times": 100},
            {"usage_limit": 10, "used_times": 10, "state": "overused"},
            {"usage_limit": 10, "used_times": 9, "state": "revoked", "revoked": True},
        ):
            self.tells(self.key(**fields))


class StateTests(SynchronousTestCase):
    def test_state(self) -> None:
        """An unknown state has a sample of its own. Without a state all are 0."""
        for state, names in (
            ("expired", STATES),
            ("lost", (*STATES, "lost")),
            ("", STATES),
        ):
            known = inventory_of(setup_keys=(SetupKey(id="k", state=state),))
            found = {
                dict(labels)["state"]: value
                for (name, labels), value in parsed(page(known))
                if name == "netbird_api_setup_key_state"
            }
            self.assertEqual({one: float(one == state) for one in names}, found)

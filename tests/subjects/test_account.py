"""Findings about the account appear, stay away, and end."""

from msgspec.structs import replace

from api_exporter.attention.thresholds import default_thresholds
from api_exporter.netbird.records import NetBirdAccount, NetBirdSettings
from tests.attention.looking import FindingsTestCase, peer, seen
from tests.inventories import inventory_of


class AccountTests(FindingsTestCase):
    def test_addresses(self) -> None:
        """A range with more than nine tenths of its addresses in use is a finding."""
        settings = NetBirdSettings(network_range="100.64.0.0/27")  # 30 addresses
        accounts = (
            NetBirdAccount(id="a", settings=settings),
            NetBirdAccount(id="b", settings=NetBirdSettings()),
        )
        full = (
            "NetBirdAddressPoolNearlyFull: The address range is nearly full: peers use"
            " 28 of 30 addresses."
        )
        for taken, line in ((27, ""), (28, full)):
            peers = tuple(peer(f"{number}") for number in range(taken))
            self.tells(inventory_of(accounts=accounts, peers=peers), line)

    def test_settings(self) -> None:
        """A setting that differs from its required value is a finding."""
        chosen = {"local_mfa_enabled": False, "lazy_connection_enabled": True}
        settings = replace(NetBirdSettings(), **chosen)
        account = NetBirdAccount(id="a", settings=settings)
        wrong = {name: not value for name, value in chosen.items()}
        alert = "NetBirdSettingDiffers: Setting"
        for wanted, lines in (
            ({}, ()),
            (
                wrong,
                (
                    f"{alert} lazy_connection_enabled is on, but must be off.",
                    f"{alert} local_mfa_enabled is off, but must be on.",
                ),
            ),
            ({**chosen, "auto_update_always": True}, ()),
        ):
            thresholds = replace(default_thresholds(), settings=wanted)
            inventory = inventory_of(accounts=(account,))
            self.tells(seen(inventory, thresholds=thresholds), *lines)

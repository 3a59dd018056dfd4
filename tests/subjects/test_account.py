"""Findings about the account appear, stay away, and end."""

from msgspec.structs import replace

from api_exporter.attention.thresholds import default_thresholds
from api_exporter.netbird.records import NetBirdAccount, NetBirdSettings
from api_exporter.subjects.account import address_count
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

    def test_range(self) -> None:
        """A range is an IPv4 range with its prefix, or it is ignored."""
        for text, count in (
            ("100.92.0.0/16", 65534),
            ("100.92.3.4/31", 0),
            ("0.0.0.0/0", 2**32 - 2),
            *((wrong, None) for wrong in ("", "16", "/16", "10.0.0.0/", "10.0.0/8")),
            *((wrong, None) for wrong in ("100.92.0.1", "010.0.0.0/8", "10.0.0.0/33")),
            *((wrong, None) for wrong in ("100.92.0.0/255.255.0.0", "fd00::/64")),
        ):
            self.assertEqual(count, address_count(text), text)

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

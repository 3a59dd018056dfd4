"""The account collector."""

from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    ExtraSettings,
    InstanceVersion,
    NetBirdAccount,
    NetBirdSettings,
)
from tests.collectors.samples import scrape

ME = '{account_id="a1"}'


class AccountTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown resources have no families."""
        self.assertEqual({}, scrape("account", Inventory()))
        self.assertEqual({}, scrape("account", Inventory(accounts=())))

    def test_account(self) -> None:
        """An account has its settings under its id."""
        account = NetBirdAccount(
            id="a1",
            domain="fjord.example",
            created_at=datetime(2026, 5, 22, 12, tzinfo=UTC),
            settings=NetBirdSettings(
                network_range="100.92.0.0/16",
                peer_login_expiration_enabled=True,
                peer_login_expiration=86_400,
                peer_inactivity_expiration_enabled=True,
                peer_inactivity_expiration=600,
                local_mfa_enabled=False,
                extra=ExtraSettings(user_approval_required=True),
            ),
        )
        self.assertEqual(
            {
                "account_info": ['{account_id="a1",domain="fjord.example"} 1'],
                "account_created_timestamp_seconds": [f"{ME} 1779451200"],
                "account_peer_login_expiration_enabled": [f"{ME} 1"],
                "account_peer_inactivity_expiration_enabled": [f"{ME} 1"],
                "account_peer_login_expiration_seconds": [f"{ME} 86400"],
                "account_peer_inactivity_expiration_seconds": [f"{ME} 600"],
                "account_setting_enabled": [
                    f'{{account_id="a1",setting="{name}"}} {value}'
                    for name, value in (
                        ("peer_login_expiration_enabled", 1),
                        ("peer_inactivity_expiration_enabled", 1),
                        ("local_mfa_enabled", 0),
                        ("extra.user_approval_required", 1),
                    )
                ],
                "account_network_addresses": [f"{ME} 65534"],
            },
            scrape("account", Inventory(accounts=(account,))),
        )

    def test_sparse_account(self) -> None:
        """Missing settings are 0 or absent; a missing time or range has no series."""
        self.assertEqual(
            {
                "account_info": ['{account_id="a1",domain=""} 1'],
                "account_peer_login_expiration_enabled": [f"{ME} 0"],
                "account_peer_inactivity_expiration_enabled": [f"{ME} 0"],
                "account_peer_login_expiration_seconds": [f"{ME} 0"],
                "account_peer_inactivity_expiration_seconds": [f"{ME} 0"],
            },
            scrape("account", Inventory(accounts=(NetBirdAccount(id="a1"),))),
        )

    def test_network_addresses(self) -> None:
        """An IPv4 range holds all its addresses but two, and at least none."""
        for network, addresses in (
            ("100.64.0.0/10", [4_194_302]),
            ("100.92.3.4/16", [65_534]),
            ("0.0.0.0/0", [4_294_967_294]),
            ("10.0.0.0/30", [2]),
            ("10.0.0.0/31", [0]),
            ("10.0.0.0/32", [0]),
            ("fd00::/64", []),
            ("10.0.0.0/33", []),
            ("10.0.0.0", []),
            ("10.0.0.0/255.0.0.0", []),
            ("010.0.0.0/8", []),
            ("invalid Prefix", []),
            ("", []),
        ):
            account = NetBirdAccount(
                id="a1", settings=NetBirdSettings(network_range=network)
            )
            self.assertEqual(
                [f"{ME} {count}" for count in addresses],
                scrape("account", Inventory(accounts=(account,))).get(
                    "account_network_addresses", []
                ),
                network,
            )

    def test_management(self) -> None:
        """The server's version has a series beside whether there is a newer one."""
        for version, update in (("0.76.3", True), ("development", False), ("", False)):
            known = InstanceVersion(
                management_current_version=version, management_update_available=update
            )
            self.assertEqual(
                {
                    "management_info": [f'{{version="{version}"}} 1'],
                    "management_update_available": [str(int(update))],
                },
                scrape("account", Inventory(instance_version=(known,))),
            )

    def test_available(self) -> None:
        """The available version has a series if there is an update with a name."""
        for update, version, samples in (
            (True, "0.77.1", ['{version="0.77.1"} 1']),
            (True, "", []),
            (False, "0.77.1", []),
        ):
            known = InstanceVersion(
                management_update_available=update,
                management_available_version=version,
            )
            self.assertEqual(
                samples,
                scrape("account", Inventory(instance_version=(known,))).get(
                    "management_available_info", []
                ),
            )

"""Findings about policies and posture checks appear, stay away, and end."""

from msgspec.structs import replace

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import GroupId
from api_exporter.subjects.policies import (
    Checks,
    Policy,
    PostureCheck,
    Rule,
    VersionCheck,
)
from tests.attention.looking import FindingsTestCase, group, peer
from tests.inventories import changed, inventory_of


class PoliciesTests(FindingsTestCase):
    def checked(self, minimum: str, *, enabled: bool = True) -> Inventory:
        """Return a posture check for a group with peers of three versions."""
        versions = ("0.9.0", "0.60.1", "dev")
        check = Checks(nb_version_check=VersionCheck(min_version=minimum))
        laptops = (GroupId(id="g-laptops"),)
        rule = Rule(enabled=True, sources=laptops, destinations=laptops)
        policy = Policy(
            id="p", enabled=enabled, rules=(rule,), source_posture_checks=("c",)
        )
        return inventory_of(
            peers=tuple(replace(peer(v), version=v) for v in versions),
            groups=(group("laptops", *versions),),
            policies=(policy,),
            posture_checks=(PostureCheck(id="c", name="new", checks=check),),
        )

    def test_versions(self) -> None:
        """A posture check that excludes peers by their version is a finding."""
        for minimum, number in (("0.60.0", "1 peer"), ("0.61.0", "2 peers")):
            self.tells(
                self.checked(minimum),
                f"NetBirdPeersOutdated: Posture check new excludes {number} with a"
                f" version below the minimum {minimum}.",
            )
        self.tells(self.checked("0.9.0"))

    def test_unused_check(self) -> None:
        """A check that no enabled policy uses is a finding, without outdated peers."""
        for inventory in (
            self.checked("9.9.9", enabled=False),
            changed(self.checked("9.9.9"), policies=()),
            # The alert needs neither groups nor peers.
            changed(self.checked("9.9.9"), policies=(), peers=None, groups=None),
        ):
            self.tells(
                inventory,
                "NetBirdPostureCheckUnused: Posture check new has no effect: no enabled"
                " policy uses this check.",
            )

    def test_policies(self) -> None:
        """A policy is a finding if a side of an enabled rule is empty."""
        rule = Rule(
            enabled=True,
            sources=(GroupId(id="g-all"),),
            destinations=(GroupId(id="g-empty"),),
        )
        policy = Policy(id="p", name="way in", enabled=True, rules=(rule,))
        inventory = inventory_of(
            peers=(peer("a"),), groups=(group("all", "a"), group("empty"))
        )
        neither = replace(policy, rules=(replace(rule, sources=None),))
        for one, sides in ((policy, "1 rule side"), (neither, "2 rule sides")):
            self.tells(
                changed(inventory, policies=(one,)),
                f"NetBirdPolicyEmpty: Policy way in has {sides} without members: these"
                " sources or destinations match no peer and no resource.",
            )
        self.tells(changed(inventory, policies=(replace(policy, enabled=False),)))
        self.tells(changed(inventory, policies=(policy,), peers=()))

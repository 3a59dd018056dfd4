"""The policies collector."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    Checks,
    Group,
    GroupId,
    Member,
    Peer,
    Policy,
    PostureCheck,
    Rule,
    TypedId,
    VersionCheck,
)
from tests.collectors.samples import Samples, scrape

SSH = '{policy_id="p1",policy="ssh"}'
BASELINE = '{posture_check_id="c1",posture_check="baseline"}'
GROUPS = (
    Group(id="peers", peers_count=1),
    Group(id="resources", resources_count=1),
    Group(id="empty"),
)
PEERS, RESOURCES, EMPTY, DELETED = (
    GroupId(id=id_) for id_ in ("peers", "resources", "empty", "deleted")
)


def of(*policies: Policy) -> Samples:
    return scrape("policies", Inventory(policies=policies, groups=GROUPS))


class PoliciesTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown policies and posture checks have no families."""
        self.assertEqual({}, scrape("policies", Inventory(groups=GROUPS, peers=())))

    def test_none(self) -> None:
        """Without policies both counts are 0."""
        self.assertEqual(
            {"policies": ['{enabled="true"} 0', '{enabled="false"} 0']}, of()
        )

    def test_rules(self) -> None:
        """Rules are counted over all policies, even unknown words."""
        families = of(
            Policy(
                id="1",
                enabled=True,
                rules=(
                    Rule(action="accept", protocol="tcp", enabled=True),
                    Rule(action="accept", protocol="tcp"),
                ),
            ),
            Policy(
                id="2", rules=(Rule(action="accept", protocol="tcp", enabled=True),)
            ),
            Policy(id="3", rules=(Rule(action="ponder", protocol="sctp"), Rule())),
            Policy(id="4", rules=None),
        )
        self.assertEqual(
            ['{enabled="true"} 1', '{enabled="false"} 3'], families["policies"]
        )
        self.assertEqual(
            [
                '{action="",protocol="",enabled="false"} 1',
                '{action="accept",protocol="tcp",enabled="false"} 1',
                '{action="accept",protocol="tcp",enabled="true"} 2',
                '{action="ponder",protocol="sctp",enabled="false"} 1',
            ],
            families["policy_rules"],
        )

    def test_one_policy(self) -> None:
        """A policy has its name on the info series, and a state."""
        for enabled in (True, False):
            families = of(Policy(id="p1", name="ssh", enabled=enabled))
            self.assertEqual([f"{SSH} 1"], families["policy_info"])
            self.assertEqual([f"{SSH} {int(enabled)}"], families["policy_enabled"])
            self.assertEqual([f"{SSH} 0"], families["policy_empty_sides"])

    def test_enabled_rules(self) -> None:
        """Enabled rules are counted, even if their policy is disabled."""
        on, off = Rule(enabled=True), Rule()
        for rules, count in ((None, 0), ((), 0), ((off,), 0), ((on, off, on), 2)):
            for enabled in (True, False):
                policy = Policy(id="p1", name="ssh", enabled=enabled, rules=rules)
                self.assertEqual([f"{SSH} {count}"], of(policy)["policy_enabled_rules"])

    def test_empty_sides(self) -> None:
        """A side without a resource is empty if all its groups are empty."""
        host = TypedId(id="host", type="host")
        for rule, empty in (
            (Rule(sources=(PEERS,), destinations=(RESOURCES,)), 0),
            (Rule(sources=(EMPTY, PEERS), destinations=(PEERS,)), 0),
            (Rule(sources=(EMPTY,), destinations=(PEERS,)), 1),
            (Rule(sources=(PEERS,), destinations=(DELETED, EMPTY)), 1),
            (Rule(sources=None, destinations=()), 2),
            (Rule(sources=(PEERS,), destination_resource=host), 0),
            (Rule(source_resource=host, destinations=(EMPTY,)), 1),
            (Rule(source_resource=host, destination_resource=host), 0),
            (Rule(source_resource=TypedId(), destination_resource=host), 1),
        ):
            for policy_on, rule_on in ((1, 1), (1, 0), (0, 1)):
                enabled = Rule(
                    enabled=bool(rule_on),
                    sources=rule.sources,
                    destinations=rule.destinations,
                    source_resource=rule.source_resource,
                    destination_resource=rule.destination_resource,
                )
                policy = Policy(
                    id="p1", name="ssh", enabled=bool(policy_on), rules=(enabled,)
                )
                self.assertEqual(
                    [f"{SSH} {empty * policy_on * rule_on}"],
                    of(policy)["policy_empty_sides"],
                    rule,
                )

    def test_sides_of_all_rules(self) -> None:
        """The empty sides of all rules add up."""
        rules = (Rule(enabled=True), Rule(enabled=True), Rule(enabled=False))
        policy = Policy(id="p1", name="ssh", enabled=True, rules=rules)
        self.assertEqual([f"{SSH} 4"], of(policy)["policy_empty_sides"])

    def test_groups_unknown(self) -> None:
        """Only the empty sides are missing while the groups are unknown."""
        policy = Policy(id="p1", enabled=True, rules=(Rule(enabled=True),))
        left = scrape("policies", Inventory(policies=(policy,)))
        self.assertEqual({"policy_empty_sides"}, set(of(policy)) - set(left))


def policy(*names: object, enabled: bool = True) -> Policy:
    """Return a policy with these posture checks and rules."""
    return Policy(
        id="p",
        enabled=enabled,
        rules=tuple(one for one in names if isinstance(one, Rule)),
        source_posture_checks=tuple(one for one in names if isinstance(one, str)),
    )


class PostureChecksTests(SynchronousTestCase):
    family = "posture_check_peers_below_min_version"

    def below(self, minimum: str, *versions: str) -> list[str]:
        """Peers count in source groups of enabled policies with the check."""
        peers = tuple(Peer(id=str(n), version=v) for n, v in enumerate(versions))
        rule = Rule(enabled=True, sources=(PEERS,))
        return self.scrape(minimum, peers, policy("c1", rule)).get(self.family, [])

    def scrape(
        self, minimum: str, peers: tuple[Peer, ...] | None, *policies: Policy
    ) -> Samples:
        check = PostureCheck(
            id="c1",
            name="baseline",
            checks=Checks(nb_version_check=VersionCheck(min_version=minimum)),
        )
        members = tuple(Member(id=peer.id) for peer in peers or ())
        groups = (
            Group(id="peers", peers=members),
            Group(id="first", peers=(*members[:1], Member(id="of nobody"))),
            Group(id="other", peers=members[1:]),
        )
        return scrape(
            "policies",
            Inventory(
                posture_checks=(check,), peers=peers, groups=groups, policies=policies
            ),
        )

    def test_policies(self) -> None:
        """Enabled policies with the check count once."""
        for policies, count in (
            ((), 0),
            ((policy("c1"),), 1),
            ((policy("c2", "c1", "c1"), policy("c1")), 2),
            ((policy("c1", enabled=False), policy("c2"), Policy(id="p")), 0),
        ):
            families = self.scrape("1.0.0", (), *policies)
            self.assertEqual(
                [f"{BASELINE} {count}"], families["posture_check_policies"], policies
            )

    def test_concerned(self) -> None:
        """Peers that the check blocks count once."""
        peers = tuple(Peer(id=str(n), version="0.1.0") for n in range(5))
        first, other = GroupId(id="first"), GroupId(id="other")
        host = TypedId(id="0", type="peer")
        for policies, count in (
            ((), 0),
            ((policy("c1"),), 0),
            ((policy("c2", Rule(enabled=True, sources=(PEERS,))),), 0),
            ((policy("c1", Rule(sources=(PEERS,))),), 0),
            ((policy("c1", Rule(enabled=True, sources=(PEERS,)), enabled=False),), 0),
            ((policy("c1", Rule(enabled=True, destinations=(PEERS,))),), 0),
            ((policy("c1", Rule(enabled=True, source_resource=host)),), 0),
            ((policy("c1", Rule(enabled=True, sources=(DELETED, first))),), 1),
            ((policy("c1", Rule(enabled=True, sources=(first, PEERS))),), 5),
            (
                tuple(
                    policy("c1", Rule(enabled=True, sources=(group,)))
                    for group in (first, other, other)
                ),
                5,
            ),
        ):
            families = self.scrape("1.0.0", peers, *policies)
            self.assertEqual([f"{BASELINE} {count}"], families[self.family], policies)

    def test_checks(self) -> None:
        """Checks are counted and named; one of another kind has no minimum."""
        checks = (PostureCheck(id="c1", name="baseline"), PostureCheck(id="c2"))
        self.assertEqual(
            {
                "posture_checks": ["2"],
                "posture_check_info": [
                    f"{BASELINE} 1",
                    '{posture_check_id="c2",posture_check=""} 1',
                ],
            },
            scrape("policies", Inventory(posture_checks=checks, peers=())),
        )

    def test_releases(self) -> None:
        """Releases are compared as numbers, and all peers of one release count."""
        for minimum, versions, count in (
            ("0.60.0", ("0.9.0", "0.59.13", "0.60.0", "0.60.1", "1.0.0"), 2),
            ("v0.60.0", ("v0.59.9", "0.59.9", "v0.60.0"), 2),
            ("0.60.0", (), 0),
            ("1.0.0", ("0.999999999.0",), 1),
        ):
            self.assertEqual(
                [f"{BASELINE} {count}"], self.below(minimum, *versions), minimum
            )

    def test_long_numbers(self) -> None:
        """A release's numbers may be of any length."""
        long = "0.99999999999.0"
        self.assertEqual([f"{BASELINE} 1"], self.below("1.0.0", long))
        self.assertEqual([f"{BASELINE} 1"], self.below(long, "0.77.1"))

    def test_not_releases(self) -> None:
        """A version without three numbers is not counted, and is no minimum."""
        for version in (
            "",
            "development",
            "ci-0.1.0",
            "0.1",
            "0.1.0.0",
            "0.1.0-rc1",
            "0.1.0+local",
            "0.1.0\n",
            " 0.1.0",
            "V0.1.0",
            "٠.١.٠",
        ):
            self.assertEqual([f"{BASELINE} 0"], self.below("9.9.9", version), version)
            self.assertEqual([], self.below(version, "0.0.1"), version)

    def test_unknown(self) -> None:
        """Families that need peers, groups or policies are missing without them."""
        check = PostureCheck(
            id="c1",
            checks=Checks(nb_version_check=VersionCheck(min_version="1.0.0")),
        )
        known = Inventory(posture_checks=(check,), policies=(), groups=(), peers=())
        checks = {"posture_checks", "posture_check_info"}
        for missing, left in (
            ("peers", checks | {"posture_check_policies"}),
            ("groups", checks | {"posture_check_policies"}),
            ("policies", checks),
        ):
            families = set(scrape("policies", known.with_(missing, None)))
            self.assertEqual(left, {f for f in families if "posture_check" in f})

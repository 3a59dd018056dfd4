"""Findings of the Agent Network, by the bodies of a real server."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import default_thresholds
from api_exporter.netbird.agent_records import AgentSettings
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import NetBirdAccount, NetBirdSettings, UserInvite
from tests.attention.looking import at, found, seen
from tests.collectors.test_agent_network import NOON, known

Found = list[tuple[str, str, str]]


def looked(inventory: Inventory, **dollars: float) -> Found:
    thresholds = replace(
        default_thresholds(), dollars=default_thresholds().dollars | dollars
    )
    return found(seen(inventory, now=NOON, thresholds=thresholds))


def of(every: Found, alert: str) -> list[tuple[str, str]]:
    return [(object_, words) for name, object_, words in every if name == alert]


class BudgetTests(SynchronousTestCase):
    def test_who(self) -> None:
        """A finding names groups, but not users."""
        every = looked(known())
        self.assertEqual(
            [
                (
                    "The budget of agent policy Engineering",
                    "is used up: a user has used 100% of 500,000 tokens in 1 day.",
                ),
                (
                    "Budget rule Gone and Ben",
                    "is used up: a user has used 100% of 50,000 tokens in 1 hour.",
                ),
            ],
            of(every, "NetBirdAgentBudgetExhausted"),
        )
        self.assertEqual(
            [
                (
                    "Budget rule Contractors",
                    "is nearly used up: a group has used 99% of 100,000 tokens in"
                    " 1 day: contractors.",
                ),
                (
                    "Budget rule Contractors",
                    "is nearly used up: a group has used 99% of 10.00 USD in 1 day:"
                    " contractors.",
                ),
            ],
            of(every, "NetBirdAgentBudgetNearlyUsed"),
        )

    def test_ended(self) -> None:
        """A window that has ended has no finding."""
        thresholds = default_thresholds()
        later = seen(known(), now=NOON + 86400, thresholds=thresholds)
        alerts = {name for name, _, _ in found(later)}
        self.assertNotIn("NetBirdAgentBudgetExhausted", alerts)
        self.assertNotIn("NetBirdAgentBudgetNearlyUsed", alerts)

    def test_cost(self) -> None:
        """A month's cost is a finding only above a threshold."""
        self.assertEqual([], of(looked(known()), "NetBirdAgentCostHigh"))
        self.assertEqual(
            [
                (
                    "The Agent Network",
                    "has cost more this month than its threshold:"
                    " 8.14 USD of 8.00 USD.",
                )
            ],
            of(looked(known(), agent_month=8.0), "NetBirdAgentCostHigh"),
        )
        for limit in (8.2, 1e6):
            every = looked(known(), agent_month=limit)
            self.assertEqual([], of(every, "NetBirdAgentCostHigh"))


class OpenTests(SynchronousTestCase):
    def test_missing(self) -> None:
        """Findings name kind and id of what enabled policies and rules miss."""
        fewer = "The rule applies to fewer groups or users than it names."
        self.assertEqual(
            [
                (
                    "Agent policy Support",
                    "names 1 missing object: guardrail ainguard_dc1diatqmd2oq13d8khg."
                    " A guardrail has the allow-list of models: a policy without its"
                    " only guardrail is unrestricted.",
                ),
                (
                    "Budget rule Contractors",
                    f"names 1 missing object: group dc1di05qmd2oq13d8k90. {fewer}",
                ),
                (
                    "Budget rule Gone and Ben",
                    "names 1 missing object: user"
                    " CiQ1ZTVjOTkyOC03ZGFmLTRlN2ItODEyOC0zZjBjM2MwNTg5NWQSBW…."
                    f" {fewer}",
                ),
            ],
            of(looked(known()), "NetBirdAgentReferenceMissing"),
        )

    def test_missing_provider(self) -> None:
        """Only a missing guardrail makes a policy less strict."""
        inventory = known()
        others = [replace(p, id=f"x{p.id}") for p in inventory.agent_providers or ()]
        inventory = inventory.with_("agent_providers", tuple(others))
        every = of(looked(inventory), "NetBirdAgentReferenceMissing")
        [words] = [words for object_, words in every if object_.endswith("Engineering")]
        self.assertRegex(words, r"^names \d missing objects?: provider [^.]*\.$")

    def test_verification(self) -> None:
        self.assertEqual(
            ["The certificate of agent provider vLLM on-prem"],
            [o for o, _ in of(looked(known()), "NetBirdAgentTlsUnverified")],
        )

    def test_without_provider(self) -> None:
        """An enabled policy without an enabled provider is a finding."""
        inventory = known()
        self.assertEqual([], of(looked(inventory), "NetBirdAgentPolicyWithoutProvider"))
        off = tuple(
            replace(provider, enabled=False)
            for provider in inventory.agent_providers or ()
        )
        found_ = looked(inventory.with_("agent_providers", off))
        self.assertEqual(5, len(of(found_, "NetBirdAgentPolicyWithoutProvider")))

    def test_prompts(self) -> None:
        for kept, redacted, number in (
            (True, False, 1),
            (True, True, 0),
            (False, False, 0),
        ):
            settings = AgentSettings(enable_prompt_collection=kept, redact_pii=redacted)
            every = looked(known().with_("agent_settings", (settings,)))
            self.assertEqual(number, len(of(every, "NetBirdAgentPromptsUnredacted")))


class AccountTests(SynchronousTestCase):
    def test_settings(self) -> None:
        """A setting that differs from its required value is a finding."""
        settings = NetBirdSettings(
            local_mfa_enabled=False, lazy_connection_enabled=True
        )
        inventory = Inventory(accounts=(NetBirdAccount(id="a", settings=settings),))
        wanted = {
            "local_mfa_enabled": True,
            "lazy_connection_enabled": True,
            "auto_update_always": True,
        }
        thresholds = replace(default_thresholds(), settings=wanted)
        self.assertEqual(
            [
                (
                    "NetBirdSettingDiffers",
                    "Setting local_mfa_enabled",
                    "is off, but must be on.",
                )
            ],
            found(seen(inventory, thresholds=thresholds)),
        )
        self.assertEqual([], found(seen(inventory)))

    def test_invites(self) -> None:
        invites = (
            UserInvite(id="1", expired=True, expires_at=at(-60)),
            UserInvite(id="2", expired=True),
            UserInvite(id="3", expires_at=at(60)),
        )
        self.assertEqual(
            [
                (
                    "NetBirdInviteExpired",
                    "2 invites",
                    "have expired and cannot be accepted.",
                )
            ],
            found(seen(Inventory(user_invites=invites))),
        )

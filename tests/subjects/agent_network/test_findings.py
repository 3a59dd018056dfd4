"""Findings of the Agent Network, by the bodies of a real server."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import Thresholds, default_thresholds
from api_exporter.netbird.inventory import Inventory
from api_exporter.subjects.agent_network.resources import AgentSettings
from api_exporter.subjects.table import RESOURCES
from tests.attention.looking import findings, seen
from tests.bodies import RECORDED_TIME, by_resource, recorded
from tests.reference.page import Settings
from tests.reference.program import decoded

USUAL = default_thresholds()


def known() -> Inventory:
    """Return the inventory of the recorded server."""
    bodies = by_resource(recorded("recorded_agents"))
    return decoded(bodies, Settings(asked=RECORDED_TIME, now=RECORDED_TIME), RESOURCES)


def said(
    inventory: Inventory, alert: str, thresholds: Thresholds | None = None
) -> list[str]:
    """Return the sentences of all findings of an alert."""
    every = findings(seen(inventory, now=RECORDED_TIME, thresholds=thresholds))
    return [one.text for one in every if one.alert == f"NetBirdAgent{alert}"]


class AgentNetworkTests(SynchronousTestCase):
    maxDiff = None

    def test_budgets(self) -> None:
        """A finding names groups, but not users. A window that has ended has none."""
        nearly = "Budget rule Contractors is nearly used up: a group has used 99% of"
        for alert, words in (
            (
                "BudgetUsedUp",
                [
                    "The budget of agent policy Engineering is used up: a user has used"
                    " 100% of 500,000 tokens in 1 day.",
                    "Budget rule Gone and Ben is used up: a user has used 100% of"
                    " 50,000 tokens in 1 hour.",
                ],
            ),
            (
                "BudgetNearlyUsedUp",
                [
                    f"{nearly} 100,000 tokens in 1 day: contractors.",
                    f"{nearly} 10.00 USD in 1 day: contractors.",
                ],
            ),
        ):
            self.assertEqual(words, said(known(), alert))
            later = findings(seen(known(), now=RECORDED_TIME + 86400))
            self.assertNotIn(f"NetBirdAgent{alert}", [one.alert for one in later])

        # A budget of which exactly the threshold is used has none either.
        exact = replace(USUAL, shares=USUAL.shares | {"agent_budget_used": 0.999})
        self.assertEqual(
            [f"{nearly} 100,000 tokens in 1 day: contractors."],
            said(known(), "BudgetNearlyUsedUp", exact),
        )

    def test_two_groups(self) -> None:
        """If several groups have used up a budget, the finding names them."""
        inventory = known()
        ids = {group.name: group.id for group in inventory.groups or ()}
        both = (ids["contractors"], ids["All"])
        rules = tuple(
            replace(rule, target_groups=both)
            for rule in inventory.records["agent_budget_rules"]
            if rule.name == "Contractors"
        )
        [spent] = inventory.records["agent_consumption"]
        rows = tuple(
            replace(row, dimension_id=id_)
            for row in spent.current
            if row.dimension_id == both[0]
            for id_ in both
        )
        inventory = inventory.replacing("agent_budget_rules", rules)
        spent = replace(spent, current=rows)
        inventory = inventory.replacing("agent_consumption", (spent,))
        nearly = "Budget rule Contractors is nearly used up: 2 groups have used up to"
        self.assertEqual(
            [
                f"{nearly} 99% of 100,000 tokens in 1 day: All, contractors.",
                f"{nearly} 99% of 10.00 USD in 1 day: All, contractors.",
            ],
            said(inventory, "BudgetNearlyUsedUp"),
        )

    def test_cost(self) -> None:
        """A month's cost is a finding only above a threshold."""
        self.assertEqual([], said(known(), "CostHigh"))
        for limit, words in (
            (
                8.0,
                [
                    "The Agent Network has cost more this month than its threshold:"
                    " 8.14 USD of 8.00 USD."
                ],
            ),
            (8.2, []),
            (1e6, []),
        ):
            thresholds = replace(USUAL, dollars={"agent_month": limit})
            self.assertEqual(words, said(known(), "CostHigh", thresholds))

    def test_missing(self) -> None:
        """Findings name kind and id of what enabled policies and rules miss."""
        fewer = "The rule applies to fewer groups or users than it names."
        self.assertEqual(
            [
                "Agent policy Support names 1 missing object: guardrail"
                " ainguard_dc1diatqmd2oq13d8khg. A guardrail has the allow-list of"
                " models: a policy without its only guardrail is unrestricted.",
                "Budget rule Contractors names 1 missing object: group"
                f" dc1di05qmd2oq13d8k90. {fewer}",
                "Budget rule Gone and Ben names 1 missing object: user"
                f" CiQ1ZTVjOTkyOC03ZGFmLTRlN2ItODEyOC0zZjBjM2MwNTg5NWQSBW…. {fewer}",
            ],
            said(known(), "ReferenceMissing"),
        )

    def test_missing_provider(self) -> None:
        """Only a missing guardrail makes a policy less strict."""
        others = [replace(p, id=f"x{p.id}") for p in known().records["agent_providers"]]
        inventory = known().replacing("agent_providers", tuple(others))
        [words] = [
            line
            for line in said(inventory, "ReferenceMissing")
            if line.startswith("Agent policy Engineering ")
        ]
        self.assertRegex(words, r"names \d missing objects?: provider [^.]*\.$")

    def test_verification(self) -> None:
        self.assertEqual(
            [
                "The certificate of agent provider vLLM on-prem is not verified: an"
                " attacker on the network can read prompts and the key."
            ],
            said(known(), "TlsUnverified"),
        )

    def test_without_provider(self) -> None:
        """An enabled policy without an enabled provider is a finding."""
        self.assertEqual([], said(known(), "PolicyWithoutProvider"))
        off = tuple(
            replace(one, enabled=False) for one in known().records["agent_providers"]
        )
        inventory = known().replacing("agent_providers", off)
        self.assertEqual(5, len(said(inventory, "PolicyWithoutProvider")))

    def test_prompts(self) -> None:
        for logged, kept, redacted, number in (
            (True, True, False, 1),
            (True, True, True, 0),
            (True, False, False, 0),
            (False, True, False, 0),
        ):
            settings = AgentSettings(
                enable_log_collection=logged,
                enable_prompt_collection=kept,
                redact_pii=redacted,
            )
            inventory = known().replacing("agent_settings", (settings,))
            self.assertEqual(number, len(said(inventory, "PromptsUnredacted")))

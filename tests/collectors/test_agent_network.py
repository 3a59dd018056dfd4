"""The collector of the Agent Network, with the bodies of a real server.

The figures are computed by hand from `tests/bodies/recorded_agents`.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.agent_bodies import Usage, day, wanted_period
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.facts.personal import PERSONAL
from api_exporter.netbird.inventory import AGENT_RESOURCES, Inventory
from api_exporter.netbird.resources import RESOURCE_BY_NAME
from tests.bodies import recorded
from tests.collectors.samples import scrape

NOON = datetime(2026, 11, 22, 12, 0, 30, tzinfo=UTC).timestamp()
READ = ("groups", "users", "peers", "agent_providers", *AGENT_RESOURCES)

ENGINEERING, SUPPORT = "ainpol_dc1diatqmd2oq13d8kig", "ainpol_dc1diatqmd2oq13d8kjg"
BURST, GHOST = "ainpol_dc1dib5qmd2oq13d8kkg", "ainpol_dc1dib5qmd2oq13d8kng"
UNCAPPED, TRIAL = "ainpol_dc1dib5qmd2oq13d8klg", "ainpol_dc1dib5qmd2oq13d8kmg"
COMPANY, CONTRACTORS = "ainbud_dc1dib5qmd2oq13d8kog", "ainbud_dc1dib5qmd2oq13d8kpg"
GONE_AND_BEN, PAUSED = "ainbud_dc1dib5qmd2oq13d8kqg", "ainbud_dc1dib5qmd2oq13d8krg"


def known(
    now: float = NOON,
    *,
    asked: float = NOON,
    changed: Mapping[str, object] = {},
    personal: bool = False,
    consumption_period: float = 600,
) -> Inventory:
    """Return the inventory of the recorded server, with some bodies replaced."""
    bodies = recorded("recorded_agents")
    inventory = Inventory(
        now=now,
        personal=frozenset(PERSONAL if personal else ()),
        consumption_period=consumption_period,
    )
    for name in READ:
        resource = RESOURCE_BY_NAME[name]
        while (path := resource.request_path(inventory, asked)) is not None:
            body = bodies[resource.path]
            if "end_date" in path:
                days = json.loads(bodies[f"{resource.path}/granularity-day"])
                first, last = wanted_period(None, asked)
                body = json.dumps(
                    [d for d in days if first <= d["period_start"] <= last]
                ).encode()
            elif name in changed:
                body = json.dumps(changed[name]).encode()
            before = getattr(inventory, name) or ()
            decoded = resource.decoder.decode(body, DecodeContext(before, now=asked))
            inventory = inventory.with_(name, decoded.records)
            if resource.request_path(inventory, asked) == path:
                break
    return inventory


def ratios(inventory: Inventory) -> dict[tuple[str, str, str], str]:
    """Return ratios by limit, `group` or `user`, and unit."""
    found = {}
    for line in scrape("agent_network", inventory)["agent_limit_used_ratio"]:
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        key = labels["limit_id"], labels["per"], labels["unit"]
        found[key] = line.rpartition(" ")[2]
    return found


def raw(name: str) -> list[dict[str, object]]:
    path = RESOURCE_BY_NAME[name].path
    body = json.loads(recorded("recorded_agents")[path])
    assert isinstance(body, list)
    return body


class LimitsTests(SynchronousTestCase):
    def test_ratios(self) -> None:
        """A ratio is the largest share of a bound group or user in the current window.

        Absent: the money of a policy with two windows, windows of a minute, caps of
        groups without target groups, disabled halves, policies and rules.
        """
        self.assertEqual(
            {
                (ENGINEERING, "group", "tokens"): "0.55",  # 1,100,000 of 2,000,000
                (ENGINEERING, "user", "tokens"): "1",  # Ben: 500,000 of 500,000
                (SUPPORT, "group", "usd"): "0.39176470588235296",  # 9.99 of 25.50
                (GHOST, "group", "tokens"): "0",  # the window before was full
                (COMPANY, "user", "usd"): "0.48100000000000004",  # Ben: 48.10 of 100
                (CONTRACTORS, "group", "tokens"): "0.99999",  # 99,999 of 100,000
                (CONTRACTORS, "group", "usd"): "0.999",  # 9.99 of 10
                (
                    CONTRACTORS,
                    "user",
                    "usd",
                ): "0.017419999999999998",  # Finn: 0.0871 of 5
                (GONE_AND_BEN, "user", "tokens"): "1",  # Ben: 50,000 of 50,000
            },
            ratios(known()),
        )

    def test_refunds(self) -> None:
        """A negative consumption uses nothing of a limit."""
        rows = [
            {**row, "cost_usd": -5, "tokens_input": -5, "tokens_output": 0}
            for row in raw("agent_consumption")
        ]
        found = ratios(known(changed={"agent_consumption": rows}))
        self.assertEqual({"0"}, set(found.values()))

    def test_no_user(self) -> None:
        """Consumption without a user counts for no limit of users or peers."""
        peers = [{**peer, "user_id": ""} for peer in raw("peers")]
        rows = raw("agent_consumption")
        nobody = [{**row, "dimension_id": "", "tokens_input": 10**9} for row in rows]
        self.assertEqual(
            ratios(known(changed={"peers": peers})),
            ratios(known(changed={"peers": peers, "agent_consumption": rows + nobody})),
        )

    def test_caps(self) -> None:
        """Enabled caps above 0 are published, even those of split windows."""
        families = scrape("agent_network", known())
        caps = [
            re.sub(r'.*limit_id="(\w+)".*per="(\w+)".*="(\d+)"} ', r"\1 \2 \3 ", line)
            for name in ("agent_limit_tokens", "agent_limit_usd")
            for line in families[name]
        ]
        self.assertEqual(
            [
                f"{ENGINEERING} group 86400 2000000",
                f"{ENGINEERING} user 86400 500000",
                f"{BURST} user 60 20000",
                f"{GHOST} group 3600 1000",
                f"{CONTRACTORS} group 86400 100000",
                f"{GONE_AND_BEN} user 3600 50000",
                f"{ENGINEERING} group 2592000 400",
                f"{ENGINEERING} user 2592000 60",
                f"{SUPPORT} group 86400 25.5",
                f"{COMPANY} user 2592000 100",
                f"{CONTRACTORS} group 86400 10",
                f"{CONTRACTORS} user 86400 5",
            ],
            caps,
        )

    def test_ended(self) -> None:
        """A window that has ended counts 0 at once; others continue."""
        before, after = ratios(known()), ratios(known(NOON + 3600 - 30))
        self.assertEqual(
            {(GONE_AND_BEN, "user", "tokens"): "0"},
            {limit: after[limit] for limit in before if before[limit] != after[limit]},
        )
        [hour] = [
            line
            for line in scrape("agent_network", known(NOON + 3600, personal=True))[
                "agent_consumer_tokens"
            ]
            if 'window_seconds="3600",direction="input"' in line
        ]
        self.assertTrue(hour.endswith(" 0"), hour)

    def test_short_windows(self) -> None:
        """A short window has a ratio if the interval is even shorter."""
        ratio = ratios(known(consumption_period=60))[BURST, "user", "tokens"]
        self.assertEqual("0.11", ratio)  # 2,200 of 20,000

    def test_one_window(self) -> None:
        """A policy with two limits of one window has a ratio of its money."""
        policies = raw("agent_policies")
        limits = policies[0]["limits"]
        assert isinstance(limits, dict)
        limits["budget_limit"]["window_seconds"] = 86400
        found = ratios(known(changed={"agent_policies": policies}))
        # ai-engineering: 6.123456789 of 400; Ben: 2.75 of 60
        self.assertEqual("0.015308641972499999", found[ENGINEERING, "group", "usd"])
        self.assertEqual("0.04583333333333333", found[ENGINEERING, "user", "usd"])

    def test_nobody(self) -> None:
        """A limit that binds no known group or user has no ratio."""
        policies = raw("agent_policies")
        for policy in policies:
            policy["source_groups"] = ["gone"]
        rules = raw("agent_budget_rules")
        rules[2]["target_users"] = ["gone"]
        changed = {"agent_policies": policies, "agent_budget_rules": rules}
        limits = {limit for limit, _, _ in ratios(known(changed=changed))}
        self.assertEqual({COMPANY, CONTRACTORS}, limits)

    def test_unlisted_user(self) -> None:
        """A consumer in the user_id of a peer need not be a listed user."""
        changed: dict[str, object] = {"users": []}
        found = ratios(known(changed=changed))
        self.assertEqual("1", found[ENGINEERING, "user", "tokens"])
        # Ben's 48.10 is removed, and the machine's 0.00 of 100 remains.
        self.assertEqual("0", found[COMPANY, "user", "usd"])
        self.assertNotIn((GONE_AND_BEN, "user", "tokens"), found)


class ReferencesTests(SynchronousTestCase):
    def test_missing(self) -> None:
        """Deleted guardrails, groups and users count; existing ones do not."""
        families = scrape("agent_network", known())
        missing = {
            line.split('"')[1]: line.rpartition(" ")[2]
            for name in (
                "agent_policy_missing_references",
                "agent_budget_rule_missing_references",
            )
            for line in families[name]
        }
        self.assertEqual(
            {SUPPORT: "1", CONTRACTORS: "1", GONE_AND_BEN: "1"},
            {id_: number for id_, number in missing.items() if number != "0"},
        )
        self.assertEqual(10, len(missing))

    def test_providers_enabled(self) -> None:
        """Only existing and enabled providers count."""
        enabled = {
            line.split('"')[1]: line.rpartition(" ")[2]
            for line in scrape("agent_network", known())[
                "agent_policy_providers_enabled"
            ]
        }
        self.assertEqual(
            {
                ENGINEERING: "2",
                SUPPORT: "1",
                BURST: "1",
                UNCAPPED: "1",
                TRIAL: "0",
                GHOST: "1",
            },
            enabled,
        )


class UsedTests(SynchronousTestCase):
    def test_groups(self) -> None:
        """Only rows of listed groups in their current window have series."""
        families = scrape("agent_network", known())
        engineering = (
            'group_id="dc1di05qmd2oq13d8k30",group="ai-engineering",'
            'window_seconds="86400"'
        )
        contractors = (
            'group_id="dc1di05qmd2oq13d8k60",group="contractors",window_seconds="86400"'
        )
        self.assertEqual(
            [
                f'{{{engineering},direction="input"}} 900000',
                f'{{{engineering},direction="output"}} 200000',
                f'{{{contractors},direction="input"}} 98000',
                f'{{{contractors},direction="output"}} 1999',
            ],
            families["agent_group_tokens"],
        )
        self.assertEqual(
            [f"{{{engineering}}} 6.123456789", f"{{{contractors}}} 9.99"],
            families["agent_group_cost_usd"],
        )
        self.assertEqual(["54"], families["agent_consumption_rows"])

    def test_consumers(self) -> None:
        """Listed users and machines have series if personal data may be published."""
        self.assertNotIn("agent_consumer_tokens", scrape("agent_network", known()))
        families = scrape("agent_network", known(personal=True))
        rows = {
            tuple(re.findall(r'="([^"]*)"', line)): line.rpartition(" ")[2]
            for line in families["agent_consumer_cost_usd"]
        }
        ben = "CiQzNzg5YWI0OS1jM2IyLTRmOGYtOTI2ZS0zODYwMmE3OGE2OTASBWxvY2Fs"
        finn = "CiQ5ZWFlMjAxZS02YTg1LTQ5YjctYTZlNy1iYjMwYmEwYzM0YzgSBWxvY2Fs"
        machine = "dc128lm5u4q1v0oo0455"
        self.assertEqual(
            {
                (ben, "3600"): "0.4",
                (machine, "60"): "0",
                (finn, "86400"): "0.0871",
                (ben, "86400"): "2.75",
                (finn, "2592000"): "1.9",
                (ben, "2592000"): "48.1",
                (machine, "2592000"): "0",
            },
            rows,
        )

    def test_usage(self) -> None:
        """The month is the sum of today and the earlier days, as on the server."""
        families = scrape("agent_network", known())
        self.assertEqual(
            [
                '{period="day",kind="input"} 47103',
                '{period="day",kind="output"} 4038',
                '{period="day",kind="cached_input"} 33162',
                '{period="day",kind="cache_creation"} 0',
                # granularity=month: the sum of the server itself
                '{period="month",kind="input"} 3068308',
                '{period="month",kind="output"} 300126',
                '{period="month",kind="cached_input"} 530829',
                '{period="month",kind="cache_creation"} 36153',
            ],
            families["agent_usage_tokens"],
        )
        self.assertEqual(
            [
                '{period="month",kind="input"} 4.9590060000000005',
                '{period="month",kind="output"} 2.9398424999999997',
                '{period="month",kind="cached_input"} 0.101043675',
                '{period="month",kind="cache_creation"} 0.13557375',
            ],
            families["agent_usage_cost_usd"][4:],
        )

    def test_midnight(self) -> None:
        """From 00:00 UTC on the day is 0, and on the first day the month is 0, too."""
        evening, month = known(NOON + 43200), known(NOON + 9 * 86400)
        for inventory, day_, month_ in ((evening, "0", "3068308"), (month, "0", "0")):
            lines = scrape("agent_network", inventory)["agent_usage_tokens"]
            self.assertEqual(
                [day_, month_],
                [line.rpartition(" ")[2] for line in (lines[0], lines[4])],
            )
            denied = scrape("agent_network", inventory)["agent_denied_requests"]
            self.assertEqual(["0"], denied)

    def test_nothing_used(self) -> None:
        """A period without requests is missing in the response, and 0 on the page."""
        families = scrape("agent_network", known(changed={"agent_usage": []}))
        self.assertEqual("0", families["agent_usage_tokens"][0].rpartition(" ")[2])

    def test_before_today(self) -> None:
        """There is no usage while only the earlier days are known."""
        usage = known().agent_usage
        assert usage is not None
        early = known().with_("agent_usage", (Usage(earlier=usage[0].earlier),))
        self.assertNotIn("agent_usage_tokens", scrape("agent_network", early))

    def test_denied(self) -> None:
        """Only the number is published, and nothing while requests are not logged."""
        self.assertEqual(
            ["6"], scrape("agent_network", known())["agent_denied_requests"]
        )
        for settings in (None, {"enable_log_collection": False}):
            families = scrape(
                "agent_network", known(changed={"agent_settings": settings})
            )
            self.assertNotIn("agent_denied_requests", families)

    def test_settings(self) -> None:
        """Missing settings are null; on older servers they are four zeros."""
        families = scrape("agent_network", known(changed={"agent_settings": None}))
        values = [line.rpartition(" ")[2] for line in families["agent_setting_enabled"]]
        self.assertEqual(["0"] * 4, values)
        self.assertNotIn("agent_access_log_retention_seconds", families)
        kept = scrape("agent_network", known())["agent_access_log_retention_seconds"]
        self.assertEqual([str(30 * 86400)], kept)


class DormantTests(SynchronousTestCase):
    def test_no_provider(self) -> None:
        """Without a provider only the providers are requested and published."""
        inventory = known(changed={"agent_providers": []})
        self.assertEqual(
            {"agent_providers": ['{enabled="true"} 0', '{enabled="false"} 0']},
            scrape("agent_network", inventory),
        )
        for name in AGENT_RESOURCES:
            self.assertIsNone(RESOURCE_BY_NAME[name].request_path(inventory, NOON))

    def test_last_provider(self) -> None:
        """The last provider removes all other records of the Agent Network."""
        inventory = known().with_("agent_providers", ())
        self.assertEqual(["agent_providers"], list(scrape("agent_network", inventory)))


class QuestionsTests(SynchronousTestCase):
    def test_usage(self) -> None:
        """The earlier days are requested once a day, then today; the first has none."""
        overview = "api/agent-network/usage/overview?granularity=day&start_date="
        usage = RESOURCE_BY_NAME["agent_usage"]
        inventory = known(changed={"agent_usage": []})
        after = inventory.with_("agent_usage", None)
        earlier = (
            f"{overview}2026-11-01T00:00:00Z&end_date=2026-11-21T23:59:59.999999999Z"
        )
        self.assertEqual(earlier, usage.request_path(after, NOON))
        today = f"{overview}2026-11-22T00:00:00Z"
        self.assertEqual(today, usage.request_path(inventory, NOON))
        self.assertIn(
            "end_date=2026-11-22", usage.request_path(inventory, NOON + 86400) or ""
        )
        first = NOON + 9 * 86400
        self.assertEqual("2026-12-01", day(first))
        self.assertEqual(
            f"{overview}2026-12-01T00:00:00Z", usage.request_path(inventory, first)
        )

    def test_denials(self) -> None:
        """Denials of today are requested with one row."""
        self.assertEqual(
            "api/agent-network/access-logs?decision=deny&page_size=1"
            "&start_date=2026-11-22T00:00:00Z",
            RESOURCE_BY_NAME["agent_denials"].request_path(known(), NOON),
        )

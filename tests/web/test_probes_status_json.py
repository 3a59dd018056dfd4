"""`/status.json` and its schema."""

import json
from collections.abc import Iterable
from typing import Any

import jsonschema
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from api_exporter.collectors.collector import MetricFilter
from api_exporter.formatting import instant
from api_exporter.netbird.records import PERSONAL
from api_exporter.ports import ALL_ACCOUNTS, UpstreamError
from tests.web.served import ServedTestCase
from tests.web.test_discovery_accounts import Knowing, several
from tests.web.watched import Watched, lost_routes

REFUSED = UpstreamError("auth", "401: token <invalid>", request_id="dc1djo")


def numbers(states: Iterable[bool]) -> dict[str, int]:
    """Return the numbers of peers that are connected or not."""
    found = list(states)
    up = sum(found)
    return {"total": len(found), "connected": up, "offline": len(found) - up}


class StatusJsonTests(ServedTestCase):
    def document(self, path: str = "/status.json") -> dict[str, Any]:
        """Return the document, which satisfies the schema."""
        status, headers, body = self.request(path)
        self.assertEqual(200, status, body)
        self.assert_headers(headers, content_type="application/json")
        document: dict[str, Any] = json.loads(body)
        validator = jsonschema.Draft202012Validator(
            json.loads(self.request("/status.schema.json")[2]),
            format_checker=jsonschema.FormatChecker(),
        )
        problems = [(e.json_path, e.message) for e in validator.iter_errors(document)]
        self.assertEqual([], problems)
        return document

    def account(self, watched: Watched) -> dict[str, Any]:
        self.tree = watched.tree
        [account] = self.document()["accounts"]
        assert isinstance(account, dict)
        return account

    def states(self, account: dict[str, Any]) -> set[str]:
        return {entry["state"] for entry in account["resources"]}

    def test_schema(self) -> None:
        """The schema is valid, and is served as one."""
        self.tree = Watched().tree
        _, headers, body = self.request("/status.schema.json")
        self.assert_headers(headers, content_type="application/schema+json")
        jsonschema.Draft202012Validator.check_schema(json.loads(body))

    def test_start(self) -> None:
        """Before the first refresh nothing is known, and nothing is 0."""
        account = self.account(Watched(important_groups=("All",)))
        document = self.document()
        for found in (document, account):
            self.assertEqual("unknown", found["verdict"])
            for key in ("last_refresh", "peers", "finding_counts"):
                self.assertIsNone(found[key], key)
        self.assertIsNone(account["groups"])
        self.assertEqual({"starting"}, self.states(account))

    def test_fresh(self) -> None:
        """A working account has instants, counts, groups that matter, and findings."""
        watched = Watched(peers=50, important_groups=("All", "nowhere")).start(60)
        account = self.account(watched)
        document = self.document()
        self.assertEqual("2027-01-15T12:01:00Z", document["generated_at"])
        self.assertEqual("2027-01-15T12:00:30Z", account["last_refresh"])
        self.assertEqual(29, account["last_refresh_age_seconds"])
        self.assertEqual("2027-03-18T00:00:00Z", account["token_expires_at"])
        states = {p.id: p.connected for p in watched.inventory.peers or ()}
        peers = numbers(states.values())
        self.assertEqual([peers, peers], [document["peers"], account["peers"]])
        every, missing = account["groups"]
        [members] = [g.peers for g in watched.inventory.groups or () if g.name == "All"]
        peers = numbers(states[member.id] for member in members or ())
        self.assertEqual(("All", peers), (every["name"], every["peers"]))
        self.assertEqual({"name": "nowhere", "id": None, "peers": None}, missing)
        self.assertEqual({"fresh"}, self.states(account))
        self.assertEqual("warning", account["verdict"])
        found = watched.findings.found
        self.assertEqual(dict(found.counts), account["finding_counts"])
        self.assertEqual(
            [(f.severity, f.alert, f.subject, f.text) for f in found.lines],
            [
                (f["severity"], f["alert"], f["subject"], f["sentence"])
                for f in account["findings"]
            ],
        )
        worst = account["findings"][0]
        self.assertEqual(f"runbooks#{worst['alert'].lower()}", worst["runbook"])

    def test_time(self) -> None:
        """Verdict and age follow the clock; without a publication the rest stays."""
        watched = Watched().start(55)
        before = self.account(watched)
        watched.silent |= {"api/peers"}
        watched.advance(60)
        after = self.account(watched)
        self.assertEqual(84, after["last_refresh_age_seconds"])
        self.assertEqual(("ok", "warning"), (before["verdict"], after["verdict"]))
        self.assertIn("late", self.states(after))
        for key in ("last_refresh", "peers", "findings", "token_expires_at"):
            self.assertEqual(before[key], after[key], key)

    def test_failing(self) -> None:
        """A failure has its reason and error; expired peers are unknown, not zero."""
        watched = Watched(important_groups=("All",)).start(55)
        watched.down = REFUSED
        account = self.account(watched.advance(60))
        self.assertEqual("critical", account["verdict"])
        self.assertEqual(f"{REFUSED} (request id dc1djo)", account["error"])
        [peers] = [e for e in account["resources"] if e["resource"] == "peers"]
        self.assertEqual(
            ("failing", "auth", account["error"], "2027-01-15T12:00:30Z"),
            (*(peers[k] for k in ("state", "reason", "error")), peers["last_refresh"]),
        )
        self.assertIsNotNone(account["peers"])
        account = self.account(watched.advance(600))
        self.assertIsNone(account["peers"])
        self.assertIsNone(account["groups"])
        self.assertIsNotNone(account["last_refresh"])

    def test_many(self) -> None:
        """A hundred findings are listed, and all are counted."""
        watched = Watched(collectors=("peers", "groups", "routes"))
        watched.bodies["api/routes"] = lost_routes(*map(str, range(200)))
        account = self.account(watched.start(60))
        self.assertEqual(100, len(account["findings"]))
        self.assertLess(199, sum(account["finding_counts"].values()))

    def test_accounts(self) -> None:
        """Sums are of known accounts; the client sees only its own ones."""
        acme, beta = Watched(name="acme", peers=20), Watched(name="beta")
        beta.down = REFUSED
        accounts = {"acme": acme.start(), "beta": beta.start()}
        accounts["gamma"] = Watched(name="gamma", peers=30).start()
        context = acme.context
        pages = several(accounts, context)
        for visible, names in (
            (ALL_ACCOUNTS, ["acme", "beta", "gamma"]),
            (frozenset({"acme", "other"}), ["acme"]),
            (frozenset(), []),
        ):
            self.tree = Knowing(pages, visible)
            document = self.document()
            self.assertEqual(names, [a["account"] for a in document["accounts"]])
            self.assertEqual(len(names), document["accounts_total"])
            known = [a["peers"] for a in document["accounts"] if a["peers"]]
            self.assertEqual(len(known), document["accounts_known"])
            total = sum(peers["total"] for peers in known) if known else None
            self.assertEqual(total, (document["peers"] or {"total": None})["total"])
        self.tree = Knowing(pages, ALL_ACCOUNTS)
        document = self.document()
        self.assertEqual("critical", document["verdict"])
        self.assertEqual("2 of 3 accounts working", document["text"])
        self.assertIsNone(document["last_refresh"])
        one = self.document("/status.json?account=acme")
        self.assertEqual([document["accounts"][0]], one["accounts"])
        self.assertEqual(one["accounts"][0]["text"], one["text"])
        self.assertEqual(404, self.request("/status.json?account=x")[0])
        self.tree = several({}, context)
        self.assertEqual("unknown", self.document()["verdict"])

    def test_unknown_detail(self) -> None:
        """While the groups of PEER_DETAIL are unknown, offline machines are not 0."""
        detail = MetricFilter(detail=frozenset({"All"}))
        watched = Watched(peers=50, metric_filter=detail)
        watched.faults["api/groups"] = UpstreamError("http_5xx", "500: broken")
        account = self.account(watched.start(60))
        self.assertIsNone(account["offline_machines_total"])
        watched.faults.clear()
        account = self.account(watched.advance(60))
        self.assertLess(0, account["offline_machines_total"])

    def test_token(self) -> None:
        """The expiry of the token is a finding wherever it is known."""
        watched = Watched()
        watched.faults["api/users"] = UpstreamError("http_5xx", "500: broken")
        soon = json.dumps(
            [
                {
                    "id": "t",
                    "name": "mine",
                    "expiration_date": "2027-01-16T12:00:00Z",
                    "last_used": "2027-01-15T12:00:00Z",
                }
            ]
        )
        watched.bodies["api/users/me/tokens"] = soon.encode()
        account = self.account(watched.start(60))
        self.assertEqual("2027-01-16T12:00:00Z", account["token_expires_at"])
        found = [finding["alert"] for finding in account["findings"]]
        self.assertIn("ApiExporterTokenExpiresVerySoon", found)

    def test_privacy(self) -> None:
        """PEER_DETAIL decides which peers are named; there is no personal data."""
        none, every = MetricFilter(detail=frozenset()), frozenset(PERSONAL)
        groups = ("All",)
        named = Watched(peers=50, important_groups=groups)
        personal = Watched(peers=50, important_groups=groups, personal=every)
        silent = Watched(peers=50, important_groups=groups, metric_filter=none)
        found = self.account(named.start(60))
        self.assertEqual(found, self.account(personal.start(60)))
        hidden = str(self.account(silent.start(60))["findings"])
        peers = [p for p in named.inventory.peers or () if not p.connected]
        self.assertTrue(any(p.name in str(found["findings"]) for p in peers))
        self.assertFalse(any(p.name in hidden for p in peers))
        hostnames = [p.hostname for p in named.inventory.peers or ()]
        self.assertTrue(all(hostnames))
        for hostname in hostnames:
            self.assertNotIn(hostname, json.dumps(found, ensure_ascii=False))


class InstantTests(ServedTestCase):
    @given(st.floats(0, 1e12))
    def test_form(self, at: float) -> None:
        """Each instant has the form that the schema promises."""
        encoded = msgspec.json.encode(instant(at)).decode()
        self.assertRegex(encoded, r'\A"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"\Z')

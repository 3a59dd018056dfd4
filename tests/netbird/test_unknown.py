"""Fields and values that this version does not know."""

import json
from collections.abc import Mapping

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.netbird.unknown import MAX_NAMES, Inspector, Unknown
from api_exporter.subjects.table import RESOURCE_BY_NAME
from tests.bodies import EVERYTHING, body, by_resource, recorded


def inspected(name: str, text: bytes, now: float = 0.0) -> Inspector:
    inspector = Inspector(name, now)
    context = DecodeContext(now=now, inspector=inspector)
    RESOURCE_BY_NAME[name].decoder.decode(text, context)
    return inspector


def names(resource: str, *objects: Mapping[str, object]) -> list[str]:
    """Return the unknown names in records, or in a single object."""
    records: object = [{"id": str(n), **one} for n, one in enumerate(objects)]
    if resource == "current_user":
        records = {"id": "me", **objects[0]}
    if resource == ACCESS_LOG:
        records = {"data": records}
    return inspected(resource, json.dumps(records).encode()).found.names()


class UnknownTests(SynchronousTestCase):
    def test_nothing(self) -> None:
        """Recorded servers have one unknown value, written into the database."""
        odd = []
        for server in ("stock", "recorded", "recorded_agents"):
            for name, text in by_resource(recorded(server)).items():
                if name in RESOURCE_BY_NAME:
                    odd += inspected(name, text).found.names()
        self.assertEqual(["meta.status=weird_new_status"], odd)

    def test_decoders(self) -> None:
        """All fields that decoders read are known."""
        for resource in EVERYTHING:
            records = resource.decoder.decode(body(resource.name)).records
            if resource.name.removeprefix("agent_") not in {
                "consumption",
                "usage",
                "denials",
            }:
                inspector = Inspector(resource.name, 0.0)
                for record in records:
                    inspector.inspect([msgspec.Raw(msgspec.json.encode(record))])
                self.assertEqual(frozenset(), inspector.found.fields, resource.name)

    def test_announced(self) -> None:
        """All that is announced for the next versions of NetBird is named."""
        restrictions = {"allow_match": "any", "appsec_mode": "observe"}
        service = {"access_restrictions": restrictions, "port_mappings": [{"port": 1}]}
        for resource, sent, found in (
            ("peers", {"network_addresses": [{"mac": ""}]}, ["network_addresses"]),
            ("peers", {"kind": "agent", "groups": [{"kind": 1}]}, "groups.kind kind"),
            ("peers", {"local_flags": {"remote_jobs_allowed": True}}, []),
            (
                "proxy_services",
                service,
                "access_restrictions.allow_match access_restrictions.appsec_mode"
                " port_mappings",
            ),
            ("proxy_clusters", {"supports_appsec": True}, ["supports_appsec"]),
            ("proxy_domains", {"supports_appsec": None}, ["supports_appsec"]),
            ("users", {"role": "agent_network_admin"}, []),
            ("user_invites", {"role": "usage_viewer"}, []),
            ("current_user", {"role": "dns_viewer"}, ["role=dns_viewer"]),
            ("proxy_services", {"targets": [{"access_action": "bypass"}]}, []),
            (
                *("proxy_services", {"targets": [{"access_action": "log"}]}),
                ["targets.access_action=log"],
            ),
            ("policies", {"rules": [{"action": "log"}] * 2}, ["rules.action=log"]),
            ("access_log", {"appsec": "captcha", "metadata": {"a": "b"}}, ["appsec"]),
        ):
            wanted = found.split() if isinstance(found, str) else found
            self.assertEqual(wanted, names(resource, sent), sent)

    def test_secrets(self) -> None:
        """Possible secrets are not shown; the number of names is limited."""
        token, mail, key = "nbp_" + 36 * "a", "eve@example.org", 1_000_000 * "k"
        for sent in ({token: 1, mail: 2, "é": 3, "": 4}, {"local_flags": {token: 1}}):
            [shown] = names("peers", sent)
            self.assertIn(shown, {"(other)", "local_flags.(other)"})
        self.assertEqual(["role=(other)"], names("users", {"role": token}))
        self.assertEqual([], names("peers", {key: 1}))
        many = {f"field{n}": 1 for n in range(5000)}
        self.assertEqual(MAX_NAMES, len(names("peers", many, many)))
        roles = ({"role": f"role{n}"} for n in range(30))
        self.assertEqual(MAX_NAMES, len(names("users", *roles)))
        inspector = Inspector("peers", 0.0)
        inspector.add_wrong_types(f"field{n}" for n in range(30))
        self.assertEqual(MAX_NAMES, len(inspector.found.names()))
        inspector = Inspector("peers", 0.0)
        for text in (
            5000 * b"[",
            b'{"id":"\xff"}',
            b'{"groups":' + 90 * b"[" + 90 * b"]",
        ):
            inspector.inspect([msgspec.Raw(text)])
        self.assertEqual(Unknown(), inspector.found)
        self.assertEqual([], names("peers", {"groups": [[[{"a": 1}]], 1, None, "a"]}))

    def test_sample(self) -> None:
        """The sample of a long list changes, so that every record has its turn."""
        peers = [{"id": str(n), f"new{n}": 1} for n in range(100)]
        text = json.dumps(peers).encode()
        turns = [inspected("peers", text, now) for now in range(0, 120, 30)]
        self.assertEqual({False}, {one.is_complete for one in turns})
        found = Unknown()
        for now in range(4):
            one = inspected("peers", text, now).found
            self.assertEqual(frozenset(), found.fields & one.fields)
            found = one
        self.assertTrue(inspected("peers", json.dumps(peers[:31]).encode()).is_complete)

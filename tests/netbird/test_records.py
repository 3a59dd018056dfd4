"""Defaults of absent fields, and memory of records."""

import tracemalloc
from unittest import SkipTest

import msgspec
from msgspec import Struct
from msgspec.structs import fields
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird import records
from api_exporter.netbird.records import record_fields
from api_exporter.subjects.agent_network.resources import Amount
from api_exporter.subjects.table import RESOURCE_BY_NAME
from tests.bodies import decoded


class DefaultsTests(SynchronousTestCase):
    def test_absent(self) -> None:
        """An absent field is false, empty or None, and never true."""
        kinds: set[type[Struct]] = set()
        found = [resource.decoder.record for resource in RESOURCE_BY_NAME.values()]
        while found:
            kind = found.pop()
            if issubclass(kind, Struct) and kind not in kinds:
                kinds.add(kind)
                found += [f.record for f in record_fields(kind) if f.record]
        self.assertGreater(len(kinds), 30)
        for kind in kinds:
            for field in fields(kind):
                if not (field.required or isinstance(field.default, Struct)):
                    self.assertFalse(field.default, (kind, field.name))


class AmountTests(SynchronousTestCase):
    def test_bounds(self) -> None:
        """An amount has no more digits than a double holds to the dollar."""
        for value, taken in ((2.0**53, True), (2.0**53 + 2, False)):
            for amount in (value, -value):
                try:
                    msgspec.convert(amount, Amount)
                except msgspec.ValidationError:
                    self.assertFalse(taken, amount)
                else:
                    self.assertTrue(taken, amount)


class SecretTests(SynchronousTestCase):
    def test_authentication(self) -> None:
        """The secrets of a service's authentication methods are not kept."""
        method = b'{"enabled":true,"pin":"1234"}'
        auth = b'{"pin_auth":%b,"header_auths":[%b,null],"later":"1"}' % (
            method,
            method,
        )
        service = b'[{"id":"s","mode":"http","auth":%b}]' % auth
        found = decoded("proxy_services", service)
        self.assertEqual((1, 0), (len(found.records), found.rejected))
        self.assertNotIn("1234", repr(found.records))


class PeerTests(SynchronousTestCase):
    def test_alike(self) -> None:
        """Equal texts of two peers, or of a peer and a member, are in memory once."""
        if not records.FREES_INTERNED:
            raise SkipTest("this Python keeps interned texts for ever")
        bodies = [b'{"id": "id%d", "os": "Debian 13"}' % number for number in range(2)]
        one, other = (msgspec.json.decode(body, type=records.Peer) for body in bodies)
        self.assertEqual("Debian 13", one.os)
        self.assertIs(one.os, other.os)
        member = msgspec.json.decode(b'{"id": "id1"}', type=records.Member)
        self.assertIs(other.id, member.id)

    def test_long(self) -> None:
        """A long text is removed from memory with its peer."""
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for number in range(20):
            body = b'{"id": "1", "os": "%d%s"}' % (number, b"x" * 100_000)
            msgspec.json.decode(body, type=records.Peer)
        kept, _ = tracemalloc.get_traced_memory()
        self.assertLess(kept, 1_000_000)

"""Bodies that NetBird sends, that it should not send, and hostile bodies."""

import contextlib
import json
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_
from types import SimpleNamespace
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird import bodies, elements
from api_exporter.netbird.bodies import (
    BodyDecoder,
    DecodeContext,
    Decoded,
    DocumentDecoder,
    ListDecoder,
    PageDecoder,
    check_for_error,
)
from api_exporter.netbird.record_cache import NO_RECORDS, KnownRecords
from api_exporter.netbird.records import Group, Peer
from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.refresh import pipeline
from api_exporter.subjects.agent_network.resources import AgentSettings
from api_exporter.subjects.dns import DnsSettings
from api_exporter.subjects.policies import Policy
from api_exporter.subjects.table import RESOURCE_BY_NAME, RESOURCES

PEERS = ListDecoder(Peer)
GROUPS = ListDecoder(Group)
DNS_SETTINGS = DocumentDecoder(DnsSettings)

PAGES = PageDecoder()

DEEP = b"[" * 100_000 + b"]" * 100_000
"""JSON that is nested too deeply for any decoder."""

NO_LISTS = (
    *(b"", b"{}", b'{"peers":[]}', b'"a"', b"7", b"\xff\xfe", b"[NaN]", DEEP),
    *(b'[{"id":"a"}', b'[{"id":"a"},{"i', b'[{"id":"a"}]x'),
    b"<!DOCTYPE html><html><body>Bad gateway</body></html>",
)

NO_DOCUMENTS = (
    *(b"", b"null", b"[]", b"{", b"<html>", b"\xff"),
    b'{"disabled_management_groups":"a"}',
    *(b'{"new":' + DEEP + b"}", b'{"new":' + b"9" * 5000 + b"}"),
)


def decode(
    body: BodyDecoder[object],
    text: bytes,
    before: Sequence[msgspec.Struct] = (),
    recognized: KnownRecords = NO_RECORDS,
) -> Decoded:
    return body.decode(text, DecodeContext(before, recognized))


def listed(*records: bytes) -> bytes:
    return b"[" + b",".join(records) + b"]"


class ListingTests(SynchronousTestCase):
    def test_no_list(self) -> None:
        """A `null` is refused if the list may not be `null`."""
        error = self.assertRaises(
            UpstreamError, decode, ListDecoder(Peer, nullable=False), b" null"
        )
        self.assertEqual("the response is null instead of a list", str(error))

    def test_long_record_that_is_no_text(self) -> None:
        """A byte that is not UTF-8 costs its string in a record of any length."""
        members = b",".join(b'{"id":"%020d"}' % n for n in range(10_000))
        found = decode(GROUPS, b'[{"id":"a","name":"x\xff","peers":[%b]}]' % members)
        self.assertEqual(
            (["x\ufffd"], 0),
            ([getattr(group, "name", "") for group in found.records], found.rejected),
        )

    def test_long_record_with_null(self) -> None:
        """A `null` is removed from a record of up to 128 KiB, and rejects others."""
        for length, rejected in ((128 * 1024, 0), (128 * 1024 + 1, 1)):
            long = b'{"id":"b","name":null,"new":"%b"}'
            long %= b"x" * (length - len(long) + 2)
            self.assertEqual(length, len(long))
            self.assertEqual(rejected, decode(GROUPS, listed(SHORT, long)).rejected)

    def test_one_bad(self) -> None:
        """A bad record costs itself alone, and its place is reported."""
        for bad, words in {
            b"{}": "the field id is missing",
            b'{"id":null}': "the field id is missing",
            b'{"id":7}': "id is a whole number, not a string",
            b"null": "the JSON is null, not an object",
            b'"a"': "the JSON is a string, not an object",
            b"[]": "the JSON is a list, not an object",
            b'{"id":"b","connected":1}': "connected is a whole number, not a boolean",
            b'{"id":"b","last_login":"yesterday"}': "last_login is not a time",
            b'{"id":"b","last_login":"2026-08-22T19:10:00"}': "last_login has a value",
            b'{"id":"b","last_login":1787425800}': "last_login is a whole number",
        }.items():
            decoded = decode(PEERS, listed(b'{"id":"a"}', bad, b'{"id":"c"}'))
            self.assertEqual((Peer(id="a"), Peer(id="c")), decoded.records)
            self.assertEqual(1, decoded.rejected, bad)
            [complaint] = decoded.errors
            self.assertEqual("[1]: ", complaint[:5])
            self.assertIn(words, complaint)

    def test_many_bad(self) -> None:
        """All bad records are counted; the first twenty are reported."""
        decoded = decode(PEERS, listed(b'{"id":"a"}', *[b"7"] * 1000))
        self.assertEqual((1000, 20), (decoded.rejected, len(decoded.errors)))
        self.assertEqual("[20]: ", decoded.errors[-1][:6])

    def test_all_bad(self) -> None:
        """A list without any readable record is refused."""
        caught = self.assertRaises(UpstreamError, decode, PEERS, b'[{"name":"a"},7]')
        self.assertEqual("decode", caught.reason)
        self.assertEqual(
            "no record can be read: [0]: the field id is missing", str(caught)
        )

    def test_refused(self) -> None:
        """A body of another form than promised is refused."""
        for body, texts in (
            (PEERS, NO_LISTS),
            (PAGES, (b"[]", b"{}", b'{"data": {}}', b"{")),
            (DNS_SETTINGS, NO_DOCUMENTS),
        ):
            for text in texts:
                error = self.assertRaises(UpstreamError, decode, body, text)
                self.assertEqual("decode", error.reason, text)
                self.assertNotEqual("", str(error), text)

    def test_too_many(self) -> None:
        """A list with too many records is refused before all of it is decoded."""
        four = listed(*[b'{"id":"%d"}' % number for number in range(4)])
        known = DecodeContext(max_records=4)
        self.assertEqual(4, len(PEERS.decode(four, known).records))
        records = b",".join(b'{"id":"%032d"}' % n for n in range(60_000))
        for text in (four[:-1] + b',{"id":"4"}]', b"[" + records + b",{}{"):
            error = self.assertRaises(UpstreamError, PEERS.decode, text, known)
            self.assertEqual("too_large", error.reason)
            expected = "the list has more than LIST_MAX_RECORDS=4 records"
            self.assertEqual(expected, str(error))

    def test_deep(self) -> None:
        """A record that is nested too deeply is left out, and no other one."""
        deep = b'{"id":"b","new":' + DEEP + b"}"
        found = decode(PEERS, listed(b'{"id":"a"}', deep, b'{"id":"c"}'))
        self.assertEqual((2, 1), (len(found.records), found.rejected))
        self.assertIn("[1]: ", found.errors[0])


class PageTests(SynchronousTestCase):
    def test_counted(self) -> None:
        """The records of a page of a log are counted; `null` counts 0."""
        for body, unread in ((b'{"data": [{}, {"id": 1}]}', 2), (b'{"data": null}', 0)):
            self.assertEqual(Decoded((), unread_count=unread), decode(PAGES, body))


ERRORS = st.builds(
    lambda message, code: json.dumps({"message": message, "code": code}).encode(),
    st.text() | st.sampled_from(["token invalid", "invalid token 7"]),
    st.integers(-1, 1000),
)
"""Errors of the NetBird API, with any code."""


class DocumentTests(SynchronousTestCase):
    @given(text=ERRORS | st.just(b"{}"))
    def test_error_is_no_document(self, text: bytes) -> None:
        """No resource takes `{}` or an error for its data: published samples stay."""
        for resource in RESOURCE_BY_NAME.values():
            error = self.assertRaises(UpstreamError, decode, resource.decoder, text)
            self.assertEqual("decode", error.reason, resource.name)

    def test_error(self) -> None:
        """An error with the status 200 has the reason of its code."""
        for code, message, reason in (
            (401, "token invalid", "auth"),
            (404, "invalid token 7", "auth"),
            (404, "peer not found", "not_found"),
            (403, "permission denied", "forbidden"),
            (422, "", "http_4xx"),
            (429, "too many requests", "rate_limited"),
            (500, "internal error", "http_5xx"),
            (0, "", "decode"),
        ):
            text = json.dumps({"message": message, "code": code}).encode()
            for resource in RESOURCE_BY_NAME.values():
                error = self.assertRaises(
                    UpstreamError,
                    pipeline.decode,
                    *(resource, "", partial(ResponseBody, text), DecodeContext(), None),
                )
                self.assertEqual(reason, error.reason, text)
                self.assertIn(str(code), str(error))
        with_id = b'{"message":"","code":401,"disabled_management_groups":[]}'
        check_for_error(with_id)
        check_for_error(b'[{"message":"","code":401}]')

    def test_null(self) -> None:
        """Settings that were never stored are `null`, and no `{}`."""
        decoder = RESOURCE_BY_NAME["agent_settings"].decoder
        null = decoder.decode(b" null\n")
        found = (null.records, null.rejected, null.unread_count)
        self.assertEqual(((AgentSettings(),), 0, 0), found)
        self.assertRaises(UpstreamError, decoder.decode, b"\vnull")

    def test_too_long(self) -> None:
        """A document of more than 1 MiB is not decoded."""
        for spaces, reason in ((2**20 - 2, "decode"), (2**20 - 1, "too_large")):
            text = b" " * spaces + b"{}"
            error = self.assertRaises(UpstreamError, decode, DNS_SETTINGS, text)
            self.assertEqual(reason, error.reason)


FIELDS = sorted(
    {name for resource in (Peer, Group, Policy) for name in resource.__struct_fields__}
)
VALUES: st.SearchStrategy[object] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "0000-12-31T19:00:00-05:00", "2026-08-22T19:10:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=6)
    ),
)
RECORDS: st.SearchStrategy[Mapping[str, object]] = st.builds(
    lambda id_, rest: {"id": id_, **rest},
    st.text(max_size=2),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4),
)
BODIES = st.sampled_from([resource.decoder for resource in RESOURCES])


class HostileTests(SynchronousTestCase):
    def check(self, body: BodyDecoder[object], text: bytes) -> None:
        """Raise nothing but UpstreamError, and report what is rejected."""
        try:
            decoded = decode(body, text)
        except UpstreamError as error:
            self.assertNotEqual("", str(error))
            return
        for complaint in decoded.errors:
            self.assertRegex(complaint, r"^\[\d+\]: .")
        msgspec.json.encode(decoded.records)  # it can be written as UTF-8

    @given(
        body=BODIES,
        value=st.lists(RECORDS, min_size=1),
        cut=st.integers(0, 10_000),
        junk=st.binary(max_size=3),
    )
    def test_damaged(
        self, body: BodyDecoder[object], value: list[object], cut: int, junk: bytes
    ) -> None:
        """JSON with extra bytes anywhere raises no other error."""
        text = json.dumps(value).encode()
        cut %= len(text)
        self.check(body, text[:cut] + junk + text[cut:])

    @given(records=st.lists(RECORDS | VALUES, max_size=20))
    @example(records=[{"id": "\ud800"}])
    def test_places(self, records: list[object]) -> None:
        """Every record with an id is read, replaced, or rejected with its place."""
        texts = [json.dumps(record).encode() for record in records]
        try:
            decoded = decode(PEERS, listed(*texts))
        except UpstreamError:
            return
        places = [int(r[1:].partition("]")[0]) for r in decoded.errors]
        self.assertEqual(decoded.rejected, len(places))
        self.assertEqual(sorted(set(places)), places)
        self.assertTrue(all(place < len(records) for place in places))
        good = [r for place, r in enumerate(records) if place not in places]
        ids = {record["id"] for record in good if isinstance(record, dict)}
        self.assertEqual(
            {id_.replace("\ud800", "\ufffd") for id_ in ids - {""}},
            {msgspec.to_builtins(r)["id"] for r in decoded.records},
        )


NAMES = st.sampled_from(["", "x" * 16, "y" * 7])
LISTS = st.lists(st.builds(Peer, id=st.sampled_from("abcde"), name=NAMES), max_size=9)
"""Lists in which peers come, go, change, change back and occur twice."""


class RecognizedTests(SynchronousTestCase):
    @given(st.lists(LISTS, max_size=6))
    def test_same_as_decoded(self, lists: list[list[Peer]]) -> None:
        """Recognized records equal those that decoding makes."""
        before: Decoded = Decoded(())
        for peers in lists:
            text = msgspec.json.encode(peers)
            decoded = decode(PEERS, text, before.records, before.recognized)
            plain = decode(PEERS, text, before.records)
            self.assertEqual(plain.records, decoded.records)
            known = {id(record) for record in before.records}
            for record in decoded.records:
                self.assertEqual(record in before.records, id(record) in known)
            before = decoded

    def many(self, name: str) -> bytes:
        return listed(
            *[b'{"id":"%d","name":"%s"}' % (n, name.encode()) for n in LENGTHS]
        )

    def test_few_changed(self) -> None:
        """Unchanged records are not decoded again, in any order."""
        before = decode(PEERS, self.many("a"))
        for _ in range(3):
            before = decode(PEERS, self.many("a"), before.records, before.recognized)
        turned = msgspec.json.encode(msgspec.json.decode(self.many("a"))[::-1])
        # Without the previous records, because an equal one would be reused.
        after = decode(PEERS, turned, (), before.recognized)
        same = sum(map(is_, before.records, reversed(after.records)))
        self.assertEqual(len(LENGTHS), same)

    def test_all_changed(self) -> None:
        """If all records change, few are looked up; unchanged ones are found later."""
        before = decode(PEERS, self.many("a"))
        for _ in range(3):
            before = decode(PEERS, self.many("a"), before.records, before.recognized)
        self.assertEqual(len(LENGTHS), len(before.recognized))
        changed = decode(PEERS, self.many("b"), before.records, before.recognized)
        self.assertLess(len(changed.recognized), len(LENGTHS) / 2)
        self.assertFalse({*changed.recognized.values()} & {*before.records})
        for _ in range(4):
            records, known = changed.records, changed.recognized
            changed = decode(PEERS, self.many("b"), records, known)
        self.assertEqual(len(LENGTHS), len(changed.recognized))

    def test_only_what_is_there(self) -> None:
        """Removed records are not kept."""
        before = decode(PEERS, self.many("a"))
        after = decode(PEERS, b"[]", before.records, before.recognized)
        self.assertEqual({}, after.recognized)


LENGTHS = [10**n + m for n in range(1, 41) for m in range(9)]
"""Ids of many lengths, so that any sample holds one of sixteen."""


STALL = 1_500_000
"""The maximum work of one call, as `Work` counts it: some tens of milliseconds."""


class Work:
    """The text that decoders get. Unlike seconds, it does not depend on other programs.

    Each comma, bracket and 64 bytes of a text count one, a text itself sixteen.
    """

    def __init__(self, test: SynchronousTestCase, body: ListDecoder[Any]) -> None:
        self._done: list[int] = []
        self._body = body
        for owner, name in ((elements, "_DECODER"), (body, "_decoder")):
            real = getattr(owner, name)
            counted = SimpleNamespace(type=real.type, decode=self._counted(real.decode))
            test.patch(owner, name, counted)
        for owner, name in (
            (elements, "replace_surrogates"),
            (bodies, "_decode_loosely"),
        ):
            test.patch(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, do: Callable[..., object]) -> Callable[..., object]:
        def counted(*given: Any) -> object:  # the last one is the text
            text = given[-1]
            text = text.encode() if isinstance(text, str) else bytes(text)
            self._done.append(16 + len(text) // 64 + sum(map(text.count, b",[")))
            return do(*given)

        return counted

    def calls(self, text: bytes) -> list[int]:
        """Return the work of each call in the decoding of a text."""
        self._done = []
        with contextlib.suppress(UpstreamError):
            self._body.decode(text)
        return self._done


MEMBER = b'{"id":"a","name":null}'
SHORT = b'{"id":"a"}'


class StallTests(SynchronousTestCase):
    def test_hostile(self) -> None:
        """Megabytes of hostile text block no call for long."""
        work = Work(self, GROUPS)
        for text in (
            b"[" + b"1," * 1_200_000 + b"1]",
            b"[" + b"1," * 150_000 + b"1]",
            b'[{"id":"a"}' + b",1" * 1_200_000 + b"]",
            b'[{"id":"a"}' + b",1" * 180_000 + b"]",
            b"[" + b"[]," * 1_200_000 + b"[]]",
            b"[" + b"{}," * 1_200_000 + b"{}]",
            b"[" + b"null," * 200_000 + b"null]",
            b"[" + b'"aaa",' * 1_200_000 + b"1]",
            listed(*[b'{"id":7}'] * 50_000),
            listed(*[b'{"id":""}'] * 50_000),
            listed(*[b'{"id":"","name":null,"peers":null}'] * 50_000),
            b"[" * 1_200_000,
            b'[{"id":"' + b"a" * 1_200_000 + b'"}]',
            b'[{"id":"' + b"},{" * 1_200_000 + b'"}]',
            b'[{"id":"' + b"]" * 1_200_000 + b'"}]',
            b'[{"id":"' + b"\xff" * 1_200_000 + b'"}]',
            b'[{"id":"a","peers_count":' + b"9" * 1_200_000 + b"}]",
            b'[{"id":"g","peers":[' + b",".join([MEMBER] * 10_000) + b"]}]",
            b'[{"id":"\\ud800' + b"\\n" * 1_000_000 + b'"}]',
            b'[{"id":"' + rb"\ud800" * 40_000 + b'"}]',
            b'[{"id":"' + rb"\ud800" * 1_200_000 + b'"}]',
            b'[{"id":"a","x":[' + b'{},{"id":"b"},' * 500_000 + b"1]}]",
            b'[{"id":"a"}' + b" " * 1_200_000 + b"]",
        ):
            self.assertLess(max(work.calls(text), default=0), STALL, text[:30])

    def test_odd_spaces(self) -> None:
        """Records with an unusual separator are one piece."""
        some = [b'{"id":"%d","name":"%b"}' % (n, b"a" * 100_000) for n in range(90)]
        found = decode(GROUPS, b"[" + b" ,".join(some) + b"]")
        self.assertEqual((90, ()), (len(found.records), found.errors))

    def test_nothing_in_it(self) -> None:
        """A quarter of a gigabyte of tiny strings is refused after a small part."""
        text = b"[" + b'"aaa",' * 44_000_000 + b'"aaa"]'
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        error = self.assertRaises(UpstreamError, decode, GROUPS, text)
        self.assertEqual("decode", error.reason)
        self.assertLess(tracemalloc.get_traced_memory()[1], 64_000_000)
        tracemalloc.stop()
        self.assertEqual([], Work(self, GROUPS).calls(text))

    def test_hopeless(self) -> None:
        """Decoding of a long list ends after a thousand bad first records."""
        bad = b'{"id":7,"name":"' + b"x" * 2000 + b'"}'
        work = Work(self, PEERS)
        few, many = (listed(*[bad] * number) for number in (1500, 50_000))
        self.assertEqual(sum(work.calls(few)), sum(work.calls(many)))

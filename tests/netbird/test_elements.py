"""Long lists are split into pieces without loss."""

import json
from itertools import chain

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird import elements
from api_exporter.ports import UpstreamError

INNER: st.SearchStrategy[object] = st.recursive(
    st.none() | st.integers() | st.text('ab},{"[]: \\\n', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries({"id": inner}, optional={"a": inner})
    ),
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {"id": st.text(max_size=3)}, optional={"a": INNER, "z": INNER}
    ),
    min_size=1,
)
STYLES = st.sampled_from(
    [
        {"separators": (",", ":")},
        {"separators": (", ", ": ")},
        {"indent": 2},
        {"separators": (" ,", " :")},
    ]
)


class ElementsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.patch(elements, "_MIN_ELEMENT_BYTES", 1)

    def pieces(self, body: bytes) -> list[list[bytes]]:
        """Return the pieces without empty ones."""
        return [
            [bytes(raw) for raw in piece] for piece in elements.elements(body) if piece
        ]

    @given(records=RECORDS, style=STYLES, size=st.integers(1, 100))
    def test_any(
        self, records: list[object], style: dict[str, object], size: int
    ) -> None:
        """No record is lost, with any content and any style."""
        self.patch(elements, "LIST_PIECE_BYTES", size)
        body = json.dumps(records, **style).encode()  # type: ignore[arg-type]
        whole = [
            bytes(raw) for raw in msgspec.json.decode(body, type=list[msgspec.Raw])
        ]
        self.assertEqual(whole, list(chain(*self.pieces(body))))

    def test_sizes(self) -> None:
        """Pieces have the intended size in every usual style."""
        records = [{"id": str(n), "in": [{"id": "x"}] * 3} for n in range(30_000)]
        for style in ({}, {"indent": 1}, {"separators": (",", ":")}):
            pieces = self.pieces(json.dumps(records, **style).encode())
            self.assertEqual(30_000, sum(map(len, pieces)))
            for piece in pieces:
                self.assertLess(sum(map(len, piece)), elements.LIST_PIECE_BYTES + 1000)

    def test_long_record(self) -> None:
        """A record of several megabytes is one element, with any content."""
        inner = b'{"id":"x","name":"a]}"},'
        string = b'{"id":"' + b"a]},{" * 300_000 + b'"}'
        for long in (b'{"id":"g","peers":[' + inner * 60_000 + b"{}]}", string):
            body = b"[" + b",".join([long, b'{"id":"h"}', long]) + b"]"
            found = list(chain(*self.pieces(body)))
            self.assertEqual([long, b'{"id":"h"}', long], found)

    def test_too_long(self) -> None:
        """A record that is far too long, or has no end, is refused."""
        self.patch(elements, "_MAX_RECORD", 3_000_000)
        for long in (
            b'{"id":"' + b"x" * 4_000_000 + b'"}',
            b'{"id":"' + b"x" * 4_000_000,
            b'{"id":' + b"[" * 4_000_000,
            b'{"id":"' + b"x" * 2_000_000 + b'"} {}',
        ):
            self.assertRaises(UpstreamError, self.pieces, b'[{"id":1},' + long + b"]")
        many = b'[{"id":[' + b'"xx",' * 500_000 + b'""]}]'
        error = self.assertRaises(UpstreamError, self.pieces, many)
        self.assertEqual("a record has too many values", str(error))
        self.patch(elements, "_MIN_ELEMENT_BYTES", 32)
        short = b"[" + b'{"id":1},' * 200_000 + b"{}]"
        error = self.assertRaises(UpstreamError, self.pieces, short)
        self.assertIn("too short", str(error))

    def test_deep(self) -> None:
        """A record that is nested too deeply is null, and no other one."""
        deep = b'{"id":"b","x":' + b'[{"a":' * 5000 + b'"}]"' + b"}]" * 5000 + b"}"
        for more in (b"", b'{"id":"c","x":"%b"},' % (b"x" * 1000) * 300):
            body = b'[{"id":"a","x":"\\ud800"},' + more + deep + b',{"id":"d"}]'
            found = list(chain(*self.pieces(body)))
            self.assertEqual(len(found), 3 + more.count(b'"c"'))
            self.assertEqual([b"null", b'{"id":"d"}'], found[-2:])
            self.assertEqual(b'{"id":"a","x":"\\ufffd"}', found[0])

    def test_deepest(self) -> None:
        """A value may have a hundred levels with the record around it."""
        for depth, expected in ((99, False), (100, True)):
            value = b"[" * depth + b"]" * depth
            found = elements._replace_deep(b'{"x":' + value + b"}", 1)
            self.assertEqual(expected, b"null" in found, depth)

    def test_error(self) -> None:
        """An error tells from which byte it counts, unless from the first one."""
        piece = b'{"id":"a"},' * 120_000
        for before, where in ((b"", ""), (piece, ", counted from byte 1048586")):
            body = b"[" + before + b'{"id":"b"},{"id"]'
            error = self.assertRaises(UpstreamError, self.pieces, body)
            self.assertIn(where, str(error))
            self.assertEqual(where != "", "counted from" in str(error))

    def test_space(self) -> None:
        """A space that JSON does not have is refused in front of a long list, too."""
        records = b'[{"id":"a"},{"id":"b"}]'
        for size in (9, 99):
            self.patch(elements, "LIST_PIECE_BYTES", size)
            self.assertTrue(self.pieces(b" \t\r\n" + records))
            for space in (b"\v", b"\f"):
                self.assertRaises(UpstreamError, self.pieces, space + records)

    def test_other_first_key(self) -> None:
        """The first record may begin with another key than all others."""
        more = [{"id": str(n), "in": [{"a": 1}] * 50} for n in range(9000)]
        body = json.dumps([{"name": "first"}, *more], separators=(",", ":")).encode()
        self.assertGreater(body.count(b","), 400_000)
        pieces = self.pieces(body)
        self.assertGreater(len(pieces), 3)
        self.assertEqual(9001, sum(map(len, pieces)))

    def test_no_end_of_a_string(self) -> None:
        """A deep record with a string without end is scanned once."""
        body = b'[{"id":"a","x":' + b"[" * 2000 + b'"' + b'\\"' * 200_000
        self.assertRaises(UpstreamError, self.pieces, body)

    def test_long_text(self) -> None:
        """A text that is too long is not mended."""
        text = b'"' + rb"\ud800" * (elements.LIST_PIECE_BYTES // 3 + 1) + b'"'
        self.assertGreater(len(text), 2 * elements.LIST_PIECE_BYTES)
        self.assertTrue(text is elements.replace_surrogates(text), "it is another one")

"""Pages: complete, and equal in plain and compressed form."""

import gc
import struct
import zlib
from itertools import combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.pages import JoinedPages, Pages, Payload, Piece, piece

NAMES = ("peers", "groups", "users")

TAIL = piece(b"# EOF\n", last=True)


def page(*texts: str) -> tuple[Piece, ...]:
    """Return a page with one piece for each text."""
    return tuple(piece(text.encode()) for text in texts)


def joined(body: Payload) -> bytes:
    return b"".join(body.slices)


def gunzipped(body: Payload) -> bytes:
    """Return the text of exactly one gzip member; zlib checks its checksum."""
    member = zlib.decompressobj(31)
    text = member.decompress(joined(body))
    assert member.eof
    assert not member.unused_data
    return text


class PagesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.pages = Pages(NAMES)

    def text(self) -> bytes:
        """Return the text of the joined pages, after a comparison of both forms."""
        whole = self.pages.whole()
        plain, compressed = whole.plain(TAIL), whole.gzipped(TAIL)
        self.assertEqual(plain.length, len(joined(plain)))
        self.assertEqual(compressed.length, len(joined(compressed)))
        self.assertEqual(joined(plain), gunzipped(compressed))
        return joined(plain)

    def test_series(self) -> None:
        """Samples are counted by collector, without comments."""
        pages = Pages(NAMES)
        pages.publish("peers", page('# HELP a b\n# TYPE a c\na{x="#"} 1\n', "a 2\n"))
        self.assertEqual({"peers": 2, "groups": 0, "users": 0}, pages.series())
        self.assertEqual({"peers": 37, "groups": 0, "users": 0}, pages.lengths())
        self.assertEqual(NAMES, pages.names)

    def test_shared(self) -> None:
        """Between two publications all scrapes share one object."""
        self.pages.publish("peers", page("peers 1\n"))
        whole = self.pages.whole()
        self.assertIs(whole, self.pages.whole())
        self.pages.publish("peers", page("peers 2\n"))
        self.assertIsNot(whole, self.pages.whole())
        self.assertEqual(b"peers 1\n# EOF\n", joined(whole.plain(TAIL)))
        self.assertEqual(b"peers 2\n# EOF\n", self.text())

    def test_first_slice(self) -> None:
        """The first slice makes Twisted's transport pause, with any pieces."""
        for sizes in ([200_000], [10, 30_000, 10, 200_000], [60_000] * 5):
            self.pages.publish("peers", page(*("x" * size for size in sizes)))
            slices = self.pages.whole().text_slices
            self.assertEqual(2**16 + 1, len(slices[0]))
            self.assertEqual(b"x" * sum(sizes), b"".join(slices))

    def test_small(self) -> None:
        """A small page is compressed as a whole, so repeated text is saved."""
        lines = "".join(f"{n:x}{n * n:x} {n}\n" for n in range(1500))
        self.assertTrue(17_000 < len(lines) < 32_000, len(lines))
        for name in NAMES:
            self.pages.publish(name, page(lines))
        alone = len(piece(lines.encode()).deflated)
        self.assertLess(self.pages.whole().deflated_length, 1.5 * alone)
        self.assertEqual(lines.encode() * 3 + b"# EOF\n", self.text())

    def test_small_text(self) -> None:
        """A small text is joined for each scrape: only its pieces are kept."""
        self.pages.publish("peers", page("x" * 30_000, "y" * 30_000))
        whole = self.pages.whole()
        first, second = whole.plain(TAIL), whole.plain(TAIL)
        self.assertEqual(first, second)
        self.assertIsNot(first.slices[0], second.slices[0])

    def test_short_pieces(self) -> None:
        """All pieces make one gzip member; long ones keep their compressed form."""
        texts = ["short 1\n", "x" * 32_768, "x" * 32_769, "long 1\n" * 50_000]
        pieces = page(*texts)
        self.assertEqual([False, False, True, True], [bool(p.stored) for p in pieces])
        self.pages.publish("users", pieces)
        self.assertEqual("".join(texts).encode() + b"# EOF\n", self.text())

    def test_short_families(self) -> None:
        """Short pieces in a row are one slice, and compressed together."""
        line = "x" * 20_000 + "\n"
        long = Random(0).randbytes(300_000).hex()
        self.pages.publish("users", page(long, *[line] * 40))
        whole = self.pages.whole()
        self.assertEqual(
            long.encode() + line.encode() * 40, joined(whole.plain(TAIL))[:-6]
        )
        lengths = [len(line) * number for number in (16, 16, 8)]
        self.assertEqual(lengths, [*map(len, whole.text_slices[2:])])
        self.assertEqual(3, len(whole.deflated_slices[2:]))

    def test_shared_slices(self) -> None:
        """All selections share the slices behind the first one."""
        pieces = page(*(Random(n).randbytes(70_000).hex() for n in range(2)))
        self.pages.publish("users", pieces)
        for names in (frozenset({"users"}), None):
            whole = self.pages.whole(names)
            self.assertIs(pieces[-1].text, whole.text_slices[-1])
            self.assertIs(pieces[-1].stored, whole.deflated_slices[-1])

    def test_chosen(self) -> None:
        """A selection of collectors is joined once until the next publication."""
        for name in NAMES:
            self.pages.publish(name, page(f"{name} 1\n", f"{name} 2\n"))
        some = frozenset({"users", "peers"})
        whole = self.pages.whole(some)
        self.assertEqual(
            b"peers 1\npeers 2\nusers 1\nusers 2\n# EOF\n",
            gunzipped(whole.gzipped(TAIL)),
        )
        self.assertIs(whole, self.pages.whole(frozenset({"peers", "users"})))
        self.assertIs(whole.pieces[-1], self.pages.whole().pieces[-1])
        nothing = self.pages.whole(frozenset())
        self.assertEqual(b"# EOF\n", gunzipped(nothing.gzipped(TAIL)))
        self.pages.publish("users", ())
        self.assertEqual(
            b"peers 1\npeers 2\n# EOF\n", joined(self.pages.whole(some).plain(TAIL))
        )

    def test_many_choices(self) -> None:
        """The cache has sixteen selections; the next one empties it."""
        pages = Pages([*"abcdefg"])
        choices = [frozenset(pair) for pair in combinations("abcdefg", 2)]
        wholes = [pages.whole(choice) for choice in choices[:16]]
        for choice, whole in zip(choices[:16], wholes, strict=True):
            self.assertIs(whole, pages.whole(choice))
        pages.whole(choices[16])
        self.assertIsNot(wholes[0], pages.whole(choices[0]))

    @settings(deadline=None)
    @given(
        rounds=st.lists(
            st.tuples(st.sampled_from(NAMES), st.lists(st.text(), max_size=4)),
            max_size=8,
        )
    )
    def test_any_pages(self, rounds: list[tuple[str, list[str]]]) -> None:
        """After each publication, both forms have the newest texts, in order."""
        self.pages = Pages(NAMES)
        newest = dict.fromkeys(NAMES, "")
        for name, texts in rounds:
            self.pages.publish(name, page(*texts))
            newest[name] = "".join(texts)
            text = "".join(newest.values())
            self.assertEqual(f"{text}# EOF\n".encode(), self.text())

    def test_huge(self) -> None:
        """A gzip member above 4 GiB has its length modulo 2^32."""

        class Huge(bytes):
            def __len__(self) -> int:
                return 2**32 + 1

        whole = JoinedPages(pieces=(replace(TAIL, text=Huge()),), crc=0)
        *_, end = whole.gzipped(TAIL).slices
        self.assertEqual((1 + len(TAIL.text),), struct.unpack("<L", end[-4:]))

    def test_garbage_collection(self) -> None:
        """A full collection visits no pages, of which many accounts have many."""
        kept = page("".join(NAMES), TAIL.text.decode())
        gc.collect()
        self.assertFalse(gc.is_tracked(kept))

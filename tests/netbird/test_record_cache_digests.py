"""Digests of bodies: which bodies are the same."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird import record_cache
from api_exporter.netbird.record_cache import digest, digest_without_times

PEER = '{"a":[{"id":"g"}],"connected":%s,"id":"%s","last_seen":"%s","os":"x"}'


def body(*peers: tuple[str, str, str]) -> bytes:
    return f"[{','.join(PEER % peer for peer in peers)}]".encode()


class WholeBody(bytes):
    """A body that must not be hashed whole."""

    def __hash__(self) -> int:
        raise AssertionError("hashed whole")


ONLINE, OFFLINE = ("true", "p", "10:00"), ("false", "q", "10:00")


class DigestTests(SynchronousTestCase):
    def test_times(self) -> None:
        """Only the times of connected peers do not count."""
        before = body(ONLINE, OFFLINE, ONLINE)
        for after, same in (
            (before, True),
            (body(("true", "p", "10:05"), OFFLINE, ("true", "p", "9:00")), True),
            (body(ONLINE, ("false", "q", "10:05"), ONLINE), False),
            (body(ONLINE, OFFLINE, ("true", "p2", "10:00")), False),
            (body(ONLINE, OFFLINE, ("false", "p", "10:00")), False),
            (body(ONLINE, OFFLINE), False),
            (before.replace(b'"os":"x"', b'"os":"y"', 1), False),
        ):
            found = digest_without_times(after)
            self.assertEqual(same, found == digest_without_times(before), after)
            self.assertEqual(after == before, digest(after) == digest(before))

    def test_pieces(self) -> None:
        """Each piece of two mebibytes is hashed alone, and counts."""
        whole = b"a" * 2**21
        self.assertEqual(1, len(digest(whole)))
        long = digest(WholeBody(whole + b"a"))
        self.assertEqual(2, len(long))
        for other in (b"b" + whole, whole + b"b", whole + b"aa"):
            self.assertNotEqual(long, digest(other))

    def test_all_connected(self) -> None:
        """The time of each connected peer does not count, wherever it stands."""
        later = ("true", "p", "10:05")
        for at in range(4):
            peers = [ONLINE] * 4
            peers[at] = later
            found = digest_without_times(body(*peers))
            self.assertEqual(digest_without_times(body(*[ONLINE] * 4)), found)

    def test_other_order(self) -> None:
        """In other JSON than Go's, each time counts, also that of an offline peer."""
        for text in (
            '[{"last_seen":"1","connected":true},{"last_seen":"%s","connected":false}]',
            '[ {"connected":true,"last_seen":"%s"}]',
            '{"connected":true,"last_seen":"%s"}',
            "[]%s",
        ):
            one, other = ((text % time).encode() for time in "12")
            self.assertNotEqual(digest_without_times(one), digest_without_times(other))

    def test_parts(self) -> None:
        """A long body is digested in parts, each of which begins with a record."""
        self.patch(record_cache, "_DIGESTED_AT_ONCE", 100)
        before = body(*[ONLINE, OFFLINE] * 9)
        moved = before.replace(b'"p","last_seen":"10', b'"p","last_seen":"11')
        found = digest_without_times(before)
        self.assertGreater(len(found), 5)
        self.assertEqual(found, digest_without_times(moved))
        self.assertGreater(len(digest(before)), 5)
        one_record = b'[{"connected":true,%s"os":"x"}]' % (b'"last_seen":"10",' * 99)
        self.assertGreater(len(digest_without_times(one_record)), 5)

"""Fingerprints of bodies and records, which no attacker can compute."""

from msgspec import Raw, Struct
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.record_cache import (
    RecordCache,
    fingerprint,
    fingerprint_function,
)


class FingerprintTests(SynchronousTestCase):
    def test_seed(self) -> None:
        """With a seed that may be known, Python's hash is not used."""
        for seed, randomized, ours in (
            (None, True, True),
            ("", True, True),
            ("random", True, True),
            ("123", True, False),
            ("0", False, False),
            (None, False, False),
        ):
            self.assertEqual(
                ours, fingerprint_function(seed, randomized=randomized) is hash, seed
            )

    def test_digest(self) -> None:
        """With SHA-256 equal bytes are recognized, and no others."""
        digest = fingerprint_function("0", randomized=False)
        self.assertEqual(digest(b"ab"), digest(b"abc"[:2]))
        self.assertNotEqual(digest(b"ab"), digest(b"ba"))


class CacheTests(SynchronousTestCase):
    def test_tries(self) -> None:
        """After 33 unknown records only a sample is looked up."""
        record = Struct()
        for length, known, unknown, found in (
            (17, 0, 32, True),
            (17, 0, 33, False),
            (17, 2, 36, True),
            (17, 2, 37, False),
            (16, 0, 99, True),
        ):
            raw = b"x" * length
            cache = RecordCache({fingerprint(raw): record})
            for _ in range(known):
                self.assertIs(record, cache.find(Raw(raw)))
            for number in range(unknown):
                self.assertIsNone(cache.find(Raw(b"%017d" % number)))
            self.assertEqual(found, cache.find(Raw(raw)) is record)

    def test_last_seen(self) -> None:
        """A connected peer is recognized without `last_seen`, an offline one is not."""
        cache = RecordCache({})
        text = '{"id":"a","connected":%s,"last_seen":"2026-01-01T00:0%s:00Z","os":"%s"}'
        for before, after, recognized in (
            (("true", 1, "x"), ("true", 2, "x"), True),
            (("true", 1, "x"), ("true", 2, "y"), False),
            (("false", 1, "x"), ("false", 2, "x"), False),
            (("false", 1, "x"), ("true", 1, "x"), False),
        ):
            record = Struct()
            cache.find(Raw((text % before).encode()))
            cache.learn(record, kept=True)
            found = RecordCache(cache.learned).find(Raw((text % after).encode()))
            self.assertEqual(recognized, found is record, (before, after))

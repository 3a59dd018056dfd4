"""What bodies are recognized by: nothing that somebody else can compute."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.record_cache import fingerprint_function


class FingerprintTests(SynchronousTestCase):
    def test_seed(self) -> None:
        """With a seed that others may know, nothing goes by Python's hash.

        Python says of each seed but 0 that its hash is randomized, and ignores the
        variable with its option -E.
        """
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
        """Without it, the same bytes are still recognized, and no others."""
        digest = fingerprint_function("0", randomized=False)
        self.assertEqual(digest(b"ab"), digest(memoryview(b"abc")[:2]))
        self.assertNotEqual(digest(b"ab"), digest(b"ba"))

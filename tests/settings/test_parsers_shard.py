"""Shards: every account belongs to exactly one process, and few accounts move."""

import socket

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.parsers import Shard, shard

NAMES = [f"customer-{number}" for number in range(2000)]


def owners(of: int) -> dict[str, int]:
    """Return the shard of each name; fail unless it is exactly one."""
    found = {}
    for name in NAMES:
        (found[name],) = (n for n in range(of) if Shard(n, of).keeps(name))
    return found


class ShardTests(SynchronousTestCase):
    @given(st.text(min_size=1), st.integers(1, 20))
    def test_exactly_once(self, name: str, of: int) -> None:
        """An account with any name has one shard."""
        self.assertEqual(1, sum(Shard(n, of).keeps(name) for n in range(of)))

    def test_one_more(self) -> None:
        """From three to four shards a quarter of the accounts moves, to the fourth."""
        three, four = owners(3), owners(4)
        moved = [name for name in NAMES if three[name] != four[name]]
        self.assertEqual({3}, {four[name] for name in moved})
        self.assertLess(abs(len(moved) / len(NAMES) - 0.25), 0.03)

    def test_stays(self) -> None:
        """An upgrade moves no account: the shards are part of the interface."""
        found = [name for name in NAMES[:10] if Shard(0, 3).keeps(name)]
        self.assertEqual([f"customer-{number}" for number in (2, 3, 5, 8, 9)], found)

    def test_texts(self) -> None:
        """`auto` takes the number from the end of the host name."""
        for text in ("", "1", "3/3", "0/0", "-1/3", "1/3/4", "a/3", "0/9999", "auto"):
            self.assertRaises(ValueError, shard, text)
        self.assertEqual(Shard(0, 3), shard("0/3"))
        self.patch(socket, "gethostname", lambda: "api-exporter-2.svc.example")
        self.assertEqual(Shard(2, 3), shard("auto/3"))
        for host, words in (
            ("host", "'host' does not end in - and a num"),
            ("host-3", "3 is not less than 3"),
        ):
            self.patch(socket, "gethostname", lambda host=host: host)
            with self.assertRaisesRegex(ValueError, words):
                shard("auto/3")

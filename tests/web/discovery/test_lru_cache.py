from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.pages import Payload
from api_exporter.web.discovery.lru_cache import MOST, MOST_BYTES, LRUCache


def payload(length: int = 1) -> Payload:
    """One that says to be so long."""
    return Payload((b"x",), length)


class KeptTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.kept = LRUCache()

    def keep(self, query: object, length: int = 1, account: str = "") -> Payload:
        made = payload(length)
        self.kept.put((account, query), (1,), made)
        return made

    def there(self, query: object, account: str = "") -> Payload | None:
        return self.kept.get((account, query), (1,))

    def test_same(self) -> None:
        """The same query of the same account gets the very same answer."""
        made = self.keep("a")
        self.assertIs(made, self.there("a"))
        self.assertIsNone(self.there("b"))
        self.assertIsNone(self.there("a", account="other"))

    def test_changed(self) -> None:
        """When something has changed the answer is gone for good."""
        self.keep("a")
        self.assertIsNone(self.kept.get(("", "a"), (2,)))
        self.assertIsNone(self.there("a"))

    def test_old_ones(self) -> None:
        """A newer answer takes the account's older ones along, and no others."""
        self.keep("a")
        other = self.keep("a", account="other")
        self.kept.put(("", "b"), (2,), payload())
        self.assertIsNone(self.there("a"))
        self.assertIs(other, self.there("a", account="other"))

    def test_number(self) -> None:
        """Of too many, that which was not asked for longest goes."""
        for number in range(MOST):
            self.keep(number)
        self.there(0)
        self.keep("one more")
        self.assertIsNone(self.there(1))
        for query in (0, 2, MOST - 1, "one more"):
            self.assertIsNotNone(self.there(query), query)

    def test_bytes(self) -> None:
        """All answers together stay below the limit, those of all accounts."""
        first = self.keep("a", MOST_BYTES // 2)
        second = self.keep("b", MOST_BYTES // 2, account="other")
        self.assertIs(first, self.there("a"))
        self.assertIs(second, self.there("b", account="other"))
        third = self.keep("c")
        self.assertIsNone(self.there("a"))
        self.assertIs(second, self.there("b", account="other"))
        self.assertIs(third, self.there("c"))

    def test_again(self) -> None:
        """An answer that was made twice counts once."""
        for _ in range(3):
            self.keep("a", MOST_BYTES // 2)
        other = self.keep("b", MOST_BYTES // 2)
        self.assertIs(other, self.there("b"))
        self.assertIsNotNone(self.there("a"))

    def test_too_long(self) -> None:
        """One that is longer than all may be is not kept, and sends nobody away."""
        short = self.keep("a")
        self.keep("b", MOST_BYTES + 1)
        self.assertIs(short, self.there("a"))
        self.assertIsNone(self.there("b"))
        exact = self.keep("c", MOST_BYTES)
        self.assertIs(exact, self.there("c"))

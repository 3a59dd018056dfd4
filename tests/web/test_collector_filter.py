"""The effect of `collect[]` and `exclude[]`."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.web.collector_filter import (
    EXPORTER,
    CollectorFilter,
    collector_filter,
)

NAMES = ("peers", "groups", "users")


def of(query: str) -> CollectorFilter:
    """Return the filter of a query such as `collect[]=peers exclude[]=exporter`."""
    found: dict[bytes, list[bytes]] = {}
    for pair in query.split():
        name, _, value = pair.partition("=")
        found.setdefault(name.encode(), []).append(value.encode("latin-1"))
    return collector_filter(found, NAMES)


class ChosenTests(SynchronousTestCase):
    def test_good(self) -> None:
        """Collectors are selected; the exporter's own metrics stay unless excluded."""
        for query, expected in {
            "": CollectorFilter(),
            "account=acme debug=1 collect=peers": CollectorFilter(),
            "collect[]=peers": CollectorFilter(frozenset({"peers"})),
            "collect[]=users collect[]=peers": CollectorFilter(
                frozenset({"peers", "users"})
            ),
            "collect[]=peers collect[]=peers": CollectorFilter(frozenset({"peers"})),
            "exclude[]=peers": CollectorFilter(frozenset({"groups", "users"})),
            "exclude[]=peers exclude[]=users exclude[]=groups": CollectorFilter(
                frozenset()
            ),
            "exclude[]=exporter": CollectorFilter(has_own=False),
            "exclude[]=exporter exclude[]=users": CollectorFilter(
                frozenset({"groups", "peers"}), has_own=False
            ),
            "collect[]=peers exclude[]=exporter": CollectorFilter(
                frozenset({"peers"}), has_own=False
            ),
        }.items():
            self.assertEqual(expected, of(query), query)

    def test_bad(self) -> None:
        """An unknown name is refused, with the allowed ones; so are both parameters."""
        both = "collect[] and exclude[] exclude each other, except exclude[]=exporter"
        for query, line in {
            "collect[]=pears": "collect[]: 'pears' is not one of peers, groups, users",
            "collect[]=": "collect[]: '' is not one of peers, groups, users",
            "collect[]=a,b": "collect[]: 'a,b' is not one of peers, groups, users",
            "collect[]=exporter": "collect[]: 'exporter' is not one of peers, groups,"
            " users",
            "collect[]=peers collect[]=events": "collect[]: 'events' is not one of"
            " peers, groups, users",
            "exclude[]=é<x>": "exclude[]: '\\xe9<x>' is not one of peers, groups,"
            " users, exporter",
            "collect[]=peers exclude[]=users": both,
            "collect[]=peers exclude[]=users exclude[]=exporter": both,
        }.items():
            with self.assertRaises(ValueError) as caught:
                of(query)
            self.assertEqual(line, str(caught.exception), query)

    def test_no_collectors(self) -> None:
        """A page without collectors accepts no name."""
        self.assertEqual(
            CollectorFilter(has_own=False),
            collector_filter({b"exclude[]": [b"exporter"]}, ()),
        )
        with self.assertRaises(ValueError) as caught:
            collector_filter({b"collect[]": [b"peers"]}, ())
        self.assertEqual(
            "collect[]: 'peers': name an account (account=NAME)", str(caught.exception)
        )

    @given(
        st.dictionaries(
            st.sampled_from([b"collect[]", b"exclude[]", b"account"]),
            st.lists(st.sampled_from([*NAMES, EXPORTER, "x"]).map(str.encode)),
        )
    )
    def test_any(self, query: dict[bytes, list[bytes]]) -> None:
        """Any query selects existing collectors or is refused in one line."""
        try:
            found = collector_filter(query, NAMES)
        except ValueError as error:
            self.assertTrue(str(error).isprintable())
            self.assertEqual(1, len(str(error).splitlines()))
        else:
            self.assertLessEqual(found.collectors or frozenset(), set(NAMES))

"""The effect of `collect[]` and `exclude[]`."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.web.metrics import collector_filter

NAMES = ("peers", "groups", "users")


def of(query: str) -> tuple[frozenset[str] | None, bool]:
    """Return the filter of a query such as `collect[]=peers exclude[]=exporter`."""
    found: dict[bytes, list[bytes]] = {}
    for pair in query.split():
        name, _, value = pair.partition("=")
        found.setdefault(name.encode(), []).append(value.encode("latin-1"))
    return collector_filter(found, NAMES)


class ChosenTests(SynchronousTestCase):
    def test_good(self) -> None:
        """Collectors are selected; the exporter's own metrics stay unless excluded."""
        for query, names, has_own in (
            ("", None, True),
            ("account=acme debug=1 collect=peers", None, True),
            ("collect[]=peers", ["peers"], True),
            ("collect[]=users collect[]=peers", ["peers", "users"], True),
            ("collect[]=peers collect[]=peers", ["peers"], True),
            ("exclude[]=peers", ["groups", "users"], True),
            ("exclude[]=peers exclude[]=users exclude[]=groups", [], True),
            ("exclude[]=exporter", None, False),
            ("exclude[]=exporter exclude[]=users", ["groups", "peers"], False),
            ("collect[]=peers exclude[]=exporter", ["peers"], False),
        ):
            chosen = None if names is None else frozenset(names)
            self.assertEqual((chosen, has_own), of(query), query)

    def test_bad(self) -> None:
        """Unknown names and both parameters at once are refused with a reason."""
        both = "collect[] and exclude[] exclude each other, except exclude[]=exporter"
        known = "is not one of peers, groups, users"
        for query, line in {
            "collect[]=pears": f"collect[]: 'pears' {known}",
            "collect[]=": f"collect[]: '' {known}",
            "collect[]=a,b": f"collect[]: 'a,b' {known}",
            "collect[]=exporter": f"collect[]: 'exporter' {known}",
            "collect[]=peers collect[]=events": f"collect[]: 'events' {known}",
            "exclude[]=é<x>": f"exclude[]: '\\xe9<x>' {known}, exporter",
            "collect[]=peers exclude[]=users": both,
            "collect[]=peers exclude[]=users exclude[]=exporter": both,
        }.items():
            error = self.assertRaises(ValueError, of, query)
            self.assertEqual(line, str(error), query)
        own = collector_filter({b"exclude[]": [b"exporter"]}, ())
        self.assertEqual((None, False), own)
        peers = {b"collect[]": [b"peers"]}
        error = self.assertRaises(ValueError, collector_filter, peers, ())
        line = "collect[]: 'peers': name an account (account=NAME)"
        self.assertEqual(line, str(error))

"""The comparison of the program's joined families with the reference's."""

import json
from collections.abc import Mapping
from fractions import Fraction

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.records import PERSONAL as KINDS
from api_exporter.subjects.table import SUBJECTS
from tests.reference import reference
from tests.reference.page import Key, Settings
from tests.reference.program import program

NO_PEER = Settings(detail=frozenset())
PUBLIC = Settings()
PERSONAL = Settings(personal=frozenset(KINDS))
SOME = Settings(detail=frozenset(("servers", "group-lab", "All")))
CHOICES = (PUBLIC, PERSONAL, SOME, NO_PEER)

JOINED = frozenset(
    row.metric.name
    for subject in SUBJECTS
    for row in subject.families
    if len(row.needs) > 1
)
"""The families that the reference has: those of several lists."""


def parsed(bodies: Mapping[str, bytes]) -> dict[str, object]:
    """Return the bodies' JSON; a byte that is not UTF-8 becomes U+FFFD."""
    return {
        name: json.loads(body.decode("utf-8", "replace"))
        for name, body in bodies.items()
    }


def differences(bodies: Mapping[str, bytes], settings: Settings) -> list[str]:
    """Return a line for each joined sample that differs."""
    expected = reference(parsed(bodies), settings)
    got = {k: v for k, v in program(bodies, settings).items() if k[0] in JOINED}
    return [
        f"{_written(key)}: {got.get(key)}, where the reference has {expected.get(key)}"
        for key in sorted(expected.keys() | got.keys(), key=_written)
        if not same(got.get(key), expected.get(key))
    ]


def same(got: float | None, expected: float | Fraction | None) -> bool:
    """Return whether two values are equal, to the last digit."""
    if got is None or expected is None:
        return got is expected
    return float(got) == float(expected)


def _written(key: Key) -> str:
    name, labels = key
    return f"{name}{dict(sorted(labels))}"


class ComparisonTestCase(SynchronousTestCase):
    def same(self, bodies: Mapping[str, bytes], *of: Settings) -> None:
        for chosen in of or CHOICES:
            self.assertEqual([], differences(bodies, chosen))

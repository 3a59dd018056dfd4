"""Each kind of mistake, by one example of code and all mistakes made in it."""

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from checks.mutation.mistakes import KINDS, mistakes, sample

EXAMPLES = {
    "a wrong sign": ("age = now - then", ["age = (then - now)"]),
    "a wrong unit": ("x = days * DAY", ["x = (days)"]),
    "a missing await": (
        "async def f():\n    x = await read()",
        ["async def f():\n    x = read()"],
    ),
    "a wrong cache key": ("key = a, b", ["key = (b,)", "key = (a,)"]),
    "state not reset": (
        "def stop(self):\n    self.x = None",
        ["def stop(self):\n    pass"],
    ),
    "a stale value handed on": ("x = changed(x)", ["pass"]),
    "off by one at a border": ("if a < b: f()", ["if a <= b: f()"]),
    "a swallowed exception": (
        "try: f()\nexcept OSError: g()",
        ["try: f()\nexcept OSError:\n    pass"],
    ),
    "a wrong default": ("def f(a=False): g()", ["def f(a=True): g()"]),
    "swapped label values": ("labels(a=x, b=y)", ["labels(a=y, b=x)"]),
    "an aggregate over the wrong set": (
        "sum(x for x in y if x)",
        ["sum(x for x in y)"],
    ),
    "a dependency not named": ("f(needs=(a, b))", ["f(needs=(b,))", "f(needs=(a,))"]),
    "the first instead of the last": ("x = y[-1]", ["x = y[0]"]),
    "a lock or guard left out": ("with lock:\n    f()", ["if True:\n    f()"]),
    "a wrong severity or duration": ("f(lasts='5m')", ["f(lasts='15m')"]),
}


class MistakesTests(SynchronousTestCase):
    def test_kinds(self) -> None:
        """Each kind finds its places in code, and no other kind finds them."""
        self.assertEqual(KINDS.keys(), EXAMPLES.keys())
        path = Path(self.mktemp())
        for kind, (source, expected) in EXAMPLES.items():
            path.write_text(source)
            found = [(one.kind, one.made()[2]) for one in mistakes(path)]
            self.assertEqual([(kind, text) for text in expected], found)

    def test_sample(self) -> None:
        """A sample is of all kinds and packages alike, and the same for each seed."""
        path = Path(self.mktemp())
        path.write_text("".join(f"{source}\n" for source, _ in EXAMPLES.values()))
        every = [(package, one) for package in "ab" for one in mistakes(path)]
        found = sample(every, 1, 2 * len(KINDS))
        self.assertEqual(found, sample(every, 1, 2 * len(KINDS)))
        self.assertNotEqual(found, sample(every, 2, 2 * len(KINDS)))
        pairs = {(package, mistake.kind) for package, mistake in found}
        self.assertEqual({(package, kind) for package in "ab" for kind in KINDS}, pairs)

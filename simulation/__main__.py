"""Simulate days of the exporter and report the first violated invariant.

One seed: `python -m simulation --seed N --days D`, or `--until STEP`. Many seeds:
`--seeds A-B`.
"""

import argparse
import sys
from collections.abc import Iterable
from functools import partial
from multiprocessing import get_context
from random import SystemRandom

from twisted.logger import globalLogBeginner

from simulation.run import Run, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="a number; without it, a fresh one")
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--until", type=int, metavar="STEP", help="end with this step")
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="of a processor, for more days"
    )
    parser.add_argument("--seeds", metavar="A-B", type=_seeds, help="so many days each")
    parser.add_argument("--processes", type=int, default=2, help="for --seeds")
    parser.add_argument(
        "--record", action="store_true", help="into docs/correctness.json"
    )
    options = parser.parse_args()
    globalLogBeginner.beginLoggingTo([], redirectStandardIO=False, discardBuffer=True)
    if options.seeds is None:
        seed = SystemRandom().randrange(10**9) if options.seed is None else options.seed
        print(f"seed {seed} …", flush=True)
        made = run(seed, options.days, options.until, options.seconds)
        sys.exit(
            _end([made], record=options.record, repeated=options.until is not None)
        )
    with get_context("fork").Pool(options.processes, maxtasksperchild=1) as pool:
        lived = partial(run, days=options.days)
        sys.exit(
            _end(
                pool.imap_unordered(lived, options.seeds),
                record=options.record,
                repeated=False,
            )
        )


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last) + 1)


def _end(runs: Iterable[Run], *, record: bool, repeated: bool) -> bool:
    """Print every run. Return whether any run violated an invariant."""
    failed = False
    for made in runs:
        failed |= made.found is not None
        _tell(made, repeated=repeated)
        if record and made.found is None:
            from tests.correctness import lived  # noqa: PLC0415 - it knows this package

            lived(
                made.seed,
                days=round(made.days, 2),
                looks=made.looks,
                requests=made.counts.get("request", 0),
                seconds=round(made.seconds),
            )
    return failed


def _tell(made: Run, *, repeated: bool) -> None:
    print(
        f"seed {made.seed}: {made.days:.2f} days, {made.step} steps,"
        f" {made.looks} looks at invariants in {made.seconds:.0f} s of a processor,"
        f" digest {made.digest[:16]}"
    )
    print(", ".join(f"{n} {kind}" for kind, n in sorted(made.counts.items())))
    if repeated or made.found is not None:
        print("\n".join(made.recent))
    if made.found is not None:
        print(f"step {made.step}: {made.found}")
        again = f"--seed {made.seed} --days {made.days + 1:.0f} --until {made.step}"
        print(f"again: python -m simulation {again}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

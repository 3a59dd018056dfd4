"""The command: `python -m simulation --seed N --days D`, or `--until STEP`."""

import argparse
import sys
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
    parser.add_argument(
        "--record", action="store_true", help="into docs/correctness.json"
    )
    options = parser.parse_args()
    seed = SystemRandom().randrange(10**9) if options.seed is None else options.seed
    print(f"seed {seed} …", flush=True)
    globalLogBeginner.beginLoggingTo([], redirectStandardIO=False, discardBuffer=True)
    made = run(seed, options.days, options.until, options.seconds)
    _tell(made, repeated=options.until is not None)
    if options.record and made.found is None:
        from tests.correctness import tell  # noqa: PLC0415 - it knows this package

        tell("simulation", f"seed {seed}", days=round(made.days, 2), steps=made.step)
    sys.exit(made.found is not None)


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


if __name__ == "__main__":
    main()

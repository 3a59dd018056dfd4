"""The command: `python -m simulation --seed N --days D`, or `--until STEP`."""

import argparse
import gc
import sys
import tempfile
import time
from pathlib import Path

from twisted.logger import globalLogBeginner

from simulation.invariants import INVARIANTS, Checks
from simulation.world import DAY, Violation, World


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--until", type=int, metavar="STEP")
    options = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        world = World(options.seed, Path(folder))
        globalLogBeginner.beginLoggingTo(
            [world.history], redirectStandardIO=False, discardBuffer=True
        )
        gc.collect()
        gc.freeze()
        sys.exit(_run(world, options))


def _run(world: World, options: argparse.Namespace) -> int:
    checks = Checks(world)
    begin = time.process_time()
    found = None
    try:
        world.start()
        for step in world.run(options.days * DAY):
            checks.look()
            if step == options.until:
                break
    except Violation as violation:
        found = violation
    taken = time.process_time() - begin
    days = world.seconds() / DAY
    print(
        f"seed {options.seed}: {days:.2f} days, {world.step} steps,"
        f" {checks.made} looks at {len(INVARIANTS)} invariants in {taken:.0f} s of a"
        f" processor ({days / max(taken, 0.01) * 60:.1f} days a minute)"
    )
    print(", ".join(f"{n} {kind}" for kind, n in sorted(world.history.counts.items())))
    print(f"digest {world.history.digest}")
    if found is not None or options.until is not None:
        print("\n".join(world.history.recent))
    if found is None:
        return 0
    print(f"step {world.step}: {found}")
    print(f"again: --seed {options.seed} --days {options.days} --until {world.step}")
    return 1


if __name__ == "__main__":
    main()

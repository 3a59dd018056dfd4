"""Simulate days of the exporter and report the first violated invariant.

One seed: `python -m simulation --seed N --days D`, or `--until STEP`. Many seeds:
`--seeds A-B`.
"""

import argparse
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable
from functools import partial
from multiprocessing import get_context
from random import SystemRandom

from twisted.logger import globalLogBeginner

from simulation.probes import PROBES, missed
from simulation.run import Run, run
from tools.correctness import record_probes, record_simulation


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="a number; without it, a fresh one")
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--until", type=int, metavar="STEP", help="end with this step")
    parser.add_argument("--seeds", metavar="A-B", type=_seeds, help="so many days each")
    parser.add_argument("--processes", type=int, default=2, help="for --seeds")
    parser.add_argument(
        "--record", action="store_true", help="into tools/correctness.json"
    )
    parser.add_argument("--probes", action="store_true", help="fail if one is missed")
    options = parser.parse_args()
    globalLogBeginner.beginLoggingTo([], redirectStandardIO=False, discardBuffer=True)
    if options.seeds is None:
        seed = SystemRandom().randrange(10**9) if options.seed is None else options.seed
        print(f"seed {seed} …", flush=True)
        done = run(seed, options.days, options.until)
        repeated = options.until is not None
        sys.exit(_report([done], options, repeated=repeated))
    with get_context("fork").Pool(options.processes, maxtasksperchild=1) as pool:
        runs = pool.imap_unordered(partial(run, days=options.days), options.seeds)
        sys.exit(_report(runs, options, repeated=False))


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last) + 1)


def _report(runs: Iterable[Run], options: Namespace, *, repeated: bool) -> bool:
    """Print every run. Return whether any run violated an invariant."""
    failed, reached = list[str](), Counter[str]()
    for done in runs:
        if done.found:
            failed.append(f"seed {done.seed}, step {done.step}: {done.found}")
        reached.update(done.reached)
        _print_run(done, repeated=repeated)
        if options.record and not done.found:
            record_simulation(
                done.seed,
                days=round(done.days, 2),
                looks=done.looks,
                requests=done.counts.get("request", 0),
                seconds=round(done.seconds),
            )
            record_probes(done.reached)
    if options.probes:
        for probe in PROBES:
            print(f"{reached[probe.name]:>8} {probe.name}")
        failed += [f"never reached: {name}" for name in missed(reached)]
        print("\n".join(failed))
    return bool(failed)


def _print_run(done: Run, *, repeated: bool) -> None:
    print(
        f"seed {done.seed}: {done.days:.2f} days, {done.step} steps,"
        f" {done.looks} looks at invariants in {done.seconds:.0f} s of a processor,"
        f" digest {done.digest[:16]}"
    )
    print(", ".join(f"{n} {kind}" for kind, n in sorted(done.counts.items())))
    verdicts = Counter[str]()
    for (_, verdict), count in done.judged.items():
        verdicts[verdict] += count
    judged = ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items()))
    print(f"findings of several lists when they were reported: {judged}")
    if repeated or done.found:
        print("\n".join(done.recent))
    if done.found:
        print(f"step {done.step}: {done.found}")
        again = f"--seed {done.seed} --days {done.days + 1:.0f} --until {done.step}"
        print(f"again: python -m simulation {again}")
    sys.stdout.flush()

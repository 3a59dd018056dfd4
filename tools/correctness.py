"""`docs/develop/correctness.md`, made from the results in `correctness.json`."""

import json
from collections.abc import Mapping
from pathlib import Path
from subprocess import check_output

from simulation.invariants import INVARIANTS
from simulation.probes import PROBES
from tools.markdown import table

RESULTS = Path(__file__).with_name("correctness.json")

NAMES = [probe.name for probe in PROBES]

BEGINNING = """\
# Correctness

Made from the code and from `tools/correctness.json` by `make docs`. Each run writes its
own figures into that file: seeds, commits, and the recorded body of each family.

## What is promised

After each step of the [simulation](#how-it-is-tried) a program checks these invariants:
"""

WAYS = """\
## How it is tried

| way | what it tries | when |
|---|---|---|
| tests | each module, with the real client and a simulated server | each change |
| plain reference | the values that join lists, against a second program that follows the contract | each change |
| `python -m simulation` | the whole program but its sockets, in bad weather made of a seed | each change and each release |
| planted bugs | whether the simulation finds bugs that we know | each release |
| `python -m checks.mutation` | whether the tests notice small mistakes | each release |
| `make fuzz` | decoders, parsers and protocols, with inputs that reach new code | each release |
| corpus of the fuzzer | the inputs that reach most code | each change |
"""

FOUND = """\
The simulation has found thirteen defects. All are mended:

* `api_exporter_resource_up` stayed 1 over nothing where an object was deleted to which
  the resource belongs.
* In five ways audit events were written twice. Each needed a rotated file or a lost
  cursor.
* The log did not tell the end of a failure where the resource was missing as before.
* A finding stayed too long after the last provider of the Agent Network was deleted.
* After an outage the exporter made one request more than half of a known burst.
* A 429 to a retry did not always pause the requests.
* A path whose server asked for a long wait kept all others of its account waiting.
* A request counted as unsent if only its last attempt was: one too many in a pause.
* Where a token saw two accounts, the second one's settings decided when logins expire.
"""

TORTURE = """\
## Calls that fail

`python -m simulation.torture` counts the calls of a short scenario that may fail. Four
accounts start, are scraped with a password, reload all files, write logs, and stop. Then
each call fails once, with each error that it may have: to open, list or close a file, to
look at it, to look up a name, to compute or to use a thread. Afterwards the invariants
hold, each resource is refreshed, and the log has no traceback. Connections and full disks
fail in the simulation.

It has found six defects. All are mended and have tests: a client certificate that could
not be read for a moment was unusable until its file changed; a traceback 55 seconds after
a server had closed an idle TLS connection; one where the folder of accounts could not be
listed; one where memory or a thread was missing; a name look-up without a thread, which
never ended; and a traceback where a log could not be closed at a stop.
"""

PLANTED = """\
## Planted bugs

`python -m simulation.planted` changes one place of the program and runs the simulation.
A bug is found when an invariant is broken, or when the simulation fails with an error.
The simulation has a month for each bug: three days of each of ten seeds, from 2000 on.
"""

MUTATION = """\
## Mutation score

A mutant is the program with one small mistake: `<` for `<=`, a call left out, `not` in
front of a condition, a larger bound, a swapped pair of arguments, a reset left out. The
mutants are a random sample of each room. Some mutants change nothing that anyone can
see, so 100 % is not possible. Tests that start programs are not run.
"""

MISTAKES = """\
## Mistakes of people

Tired people make other mistakes than a change of operators. `checks/mutation/mistakes.py`
has their kinds and finds the places of each in the code. A sample has all kinds alike,
and all rooms of each kind. A mistake that no test notices may still be refused by the
checks: mypy or ruff. A release needs nine in ten noticed by the tests, with a seed that
was not used before. Tests that start programs are not run:

```sh
.venv/bin/python -m checks.mutation --mistakes 200 --seed N
```

Of a hundred mistakes of each new seed the tests noticed 92 (seed 79), 85 (80), 87 (8101)
and 86 (8102). Of the newest seeds they noticed 55 of 60 (8201), 55 of 60 (8202) and 70 of 80
(8203). That is 180 of 200. The checks noticed 4 more of these.
"""

FUZZ = """\
## Fuzzing

Each target states its properties in `checks/fuzz/`.

The fuzzer has found two defects. A configuration file may have a line with a token and
no name. The error repeated the token if `=` or a comment followed. The web configuration
may name a file with control characters. The error repeated them.
"""

REAL = """\
## Compared with real servers

The answers of three NetBird servers are recorded: 288 peers with something of
everything, an agent network, and a new account with a dozen peers. The exporter and
the plain reference compute all values from them that join lists.
"""

LIMITS = """\
## What the API gets wrong

The exporter repeats what the API says. In these cases the API is wrong, and no exporter
can know it:

| what you see | what is true | what helps |
|---|---|---|
| a peer is connected | The management server was killed while the peer was connected. The peer has not returned since. From 0.60.5 on nothing corrects this. | a [ping of each peer](../service-discovery.md) by blackbox_exporter |
| a peer is connected | The peer reaches the management server, but no other peer. `connected` says nothing about tunnels and relays. | a ping of each peer; the metrics of the [client](../metrics.md) |
| a reverse proxy is connected | The service behind it is dead. The API knows only the proxy. | a probe of the public address by [blackbox_exporter](../metrics.md#probes-of-your-own-servers) |
| nothing | Dead proxy peers are left in the database of the server. The API shows them nowhere. | `netbird_api_proxy_cluster_connected_proxies` shows how many proxies live |
"""

Results = dict[str, dict[str, dict[str, float | str]]]


def results() -> Results:
    """Return the measured results by kind of run, and by subject."""
    found: Results = json.loads(RESULTS.read_text())
    return found


def record_result(kind: str, subject: str, **figures: float | str) -> None:
    """Replace the previous results of a run."""
    found = results()
    found.setdefault(kind, {})[subject] = figures
    RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def record_simulation(seed: int, **figures: float) -> None:
    """Add a simulated seed to those of the same commit."""
    command = ("git", "rev-parse", "--short", "HEAD")
    commit = check_output(command, cwd=RESULTS.parent, text=True).strip()
    before = results().get("simulation", {}).get(commit, {})
    seeds = str(before.get("seeds", "")).split()
    if str(seed) not in seeds:
        sums = {n: round(float(before.get(n, 0)) + of, 2) for n, of in figures.items()}
        record_result("simulation", commit, seeds=" ".join([*seeds, str(seed)]), **sums)


def record_probes(counts: Mapping[str, int]) -> None:
    """Add how often a simulation reached each probe."""
    before = results().get("probes", {}).get("reached", {})
    sums = {name: int(before.get(name, 0)) + counts.get(name, 0) for name in NAMES}
    record_result("probes", "reached", **sums)


def correctness() -> str:
    found = results()
    fuzzed, tried = found.get("fuzz", {}), found.get("mutation", {})
    planted, real = found.get("planted", {}), found.get("recorded", {})
    runs = found.get("simulation", {})
    mutants, killed = total(tried, "mutants"), total(tried, "killed")
    values = total(real, "values")
    return "\n".join(
        (
            BEGINNING,
            table(
                ("promise", "document", "invariant"),
                (
                    (
                        invariant.promise,
                        f"[{Path(invariant.document).name}]"
                        f"(../{invariant.document.removeprefix('docs/')})",
                        invariant.name,
                    )
                    for invariant in INVARIANTS
                ),
            ),
            WAYS,
            random_order(found.get("order", {})),
            f"Simulated until now: {total(runs, 'days') / 365:,.2f} years of"
            f" {sum(len(str(of['seeds']).split()) for of in runs.values()):,} seeds,"
            f" with {total(runs, 'requests'):,.0f} requests and"
            f" {total(runs, 'looks'):,.0f} looks at invariants. Each seed is a world of"
            " its own: other accounts, settings and weather.\n",
            FOUND,
            probes(found.get("probes", {}).get("reached", {})),
            TORTURE,
            PLANTED,
            planted_bugs(planted),
            MUTATION,
            f"The tests noticed {killed:,.0f} of {mutants:,.0f}"
            f" ({killed / max(mutants, 1):.0%}). Before this release they noticed"
            f" {total(tried, 'first_killed'):,.0f} of other"
            f" {total(tried, 'first_mutants'):,.0f}.\n",
            f"{least(tried)} `tools/correctness.json` has each room and its seeds.\n",
            MISTAKES,
            mistakes(found.get("mistakes", {})),
            survivors(found.get("survivors", {})),
            FUZZ,
            f"{len(fuzzed)} targets had {total(fuzzed, 'executions'):,.0f} inputs in"
            f" {total(fuzzed, 'minutes'):,.0f} minutes of a processor.\n",
            REAL,
            f"{values - total(real, 'different'):,.0f} of {values:,.0f} values are"
            " equal.\n",
            proofs(found.get("ledger", {})),
            LIMITS,
        )
    )


def probes(reached: Mapping[str, float | str]) -> str:
    """Return how often the simulation reached its probes."""
    counts = {name: int(reached.get(name, 0)) for name in NAMES}
    least = min(counts, key=lambda name: counts[name])
    return (
        f"Of {len(counts)} rare lines that `simulation/probes.txt` names, the simulation"
        f" reached {sum(map(bool, counts.values()))}, each {counts[least]:,} times or"
        f" more; the rarest is: {least}.\n"
    )


def random_order(runs: Mapping[str, Mapping[str, float | str]]) -> str:
    found = table(
        ("tests", "runs", "the last without a failure"),
        (
            (kind, str(of["runs"]), str(of["passed"]))
            for kind, of in sorted(runs.items(), reverse=True)
        ),
    )
    return (
        "All tests ran in random order, with other work on both processors. That found"
        f" one defect of the exporter and four of tests. All are mended.\n\n{found}"
    )


def planted_bugs(planted: Mapping[str, Mapping[str, float | str]]) -> str:
    """Return which invariants found how many bugs, how soon, and what none found."""
    days: dict[str, list[float]] = {}
    lines = (RESULTS.parents[1] / "simulation/planted.txt").read_text().splitlines()
    listed = {line.partition(" | ")[0] for line in lines}
    planted = {name: of for name, of in planted.items() if name in listed}
    for of in planted.values():
        days.setdefault(str(of["by"]), []).append(float(of["days"]))
    missed = [
        f"{name} ({of['days']:.0f} days)"
        for name, of in sorted(planted.items())
        if not of["by"]
    ]
    days.pop("", None)
    rows = (
        (by, str(len(times)), f"{min(times):.2f} to {max(times):.2f}")
        for by, times in sorted(days.items())
    )
    return (
        f"Of {len(listed)} bugs in `simulation/planted.txt` {len(planted)} were tried."
        f" The simulation found all but: {'; '.join(missed)}.\n\n"
    ) + table(("invariant", "bugs", "after simulated days"), rows)


def mistakes(tried: Mapping[str, Mapping[str, float | str]]) -> str:
    """Return how many mistakes of each kind the tests and the checks noticed."""
    columns = "killed", "mutants", "refused", "first_killed", "first_mutants"
    rows = {kind: [float(of[name]) for name in columns] for kind, of in tried.items()}
    rows["**all**"] = [total(tried, name) for name in columns]
    return table(
        ("kind", "noticed by tests", "only by the checks", "by tests before"),
        (
            (kind, f"{a:.0f} of {b:.0f}", f"{c:.0f}", f"{d:.0f} of {e:.0f}")
            for kind, (a, b, c, d, e) in rows.items()
        ),
    )


def survivors(found: Mapping[str, Mapping[str, float | str]]) -> str:
    """Return the mistakes that no test and no check noticed."""
    return (
        "Many of those that nothing noticed have a test since. These live:\n\n"
        + table(
            ("where", "mistake", "why it lives"),
            (
                (f"`{place}`", f"`{change}`", str(of["why"]))
                for name, of in sorted(found.items())
                for place, _, change in [name.partition(": ")]
            ),
        )
    )


def proofs(ledger: Mapping[str, Mapping[str, float | str]]) -> str:
    """Return how many families are not 0 in a recorded body."""
    proven = sum(not of["reason"] for of in ledger.values())
    return (
        f"{proven} of {len(ledger)} families are not 0 in a body that a real server has"
        " sent. `tools/correctness.json` has the file and the path of each, or why"
        " there is none.\n"
    )


def least(tried: Mapping[str, Mapping[str, float | str]]) -> str:
    """Return a sentence about the room whose tests noticed the fewest mutants."""
    shares = {
        room: float(of["killed"]) / max(float(of["mutants"]), 1)
        for room, of in tried.items()
    }
    room = min(sorted(shares), key=lambda name: shares[name])
    return f"The lowest share of a room is that of `{room}`: {shares[room]:.0%}."


def total(figures: Mapping[str, Mapping[str, float | str]], name: str) -> float:
    """Return the sum of one figure over all subjects."""
    return sum(float(of[name]) for of in figures.values())

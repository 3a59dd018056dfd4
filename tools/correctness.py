"""`docs/develop/correctness.md`, made from the results in `correctness.json`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import check_output

from simulation.invariants import INVARIANTS
from simulation.probes import PROBES
from tools.json_text import json_text
from tools.markdown import table

RESULTS = Path(__file__).with_name("correctness.json")

NAMES = [probe.name for probe in PROBES]

BEGINNING = """\
# Correctness

Made from the code and from `tools/correctness.json` by `make docs`. Each run writes its
figures into that file, and the mistakes that nothing noticed, each with the reason.

## What is promised

After each step of the [simulation](#how-it-is-tried) a program checks these invariants:
"""

REAL = """\
## Compared with real servers

The answers of three NetBird servers are recorded: 288 peers with something of
everything, an Agent Network, and a new account with a dozen peers. The exporter and
the plain reference compute all values from them that join lists.
"""

LIMITS = """\
## What the API gets wrong

In these cases the API is wrong, and no exporter can know it:

| what you see | what is true | what helps |
|---|---|---|
| a peer is connected | The management server was killed while the peer was connected. The peer has not returned since. From 0.60.5 on nothing corrects this. | a [ping of each peer](../service-discovery.md) by blackbox_exporter |
| a peer is connected | The peer reaches the management server, but no other peer. `connected` says nothing about tunnels and relays. | a ping of each peer; the metrics of the [client](../metrics.md) |
| a reverse proxy is connected | The service behind it is dead. The API knows only the proxy. | a probe of the public address by [blackbox_exporter](../metrics.md#probes-of-your-own-servers) |
| nothing | Dead proxy peers are left in the database of the server. The API shows them nowhere. | `netbird_api_proxy_cluster_connected_proxies` shows how many proxies live |
"""

Figures = Mapping[str, Mapping[str, float | str]]

Results = dict[str, dict[str, dict[str, float | str]]]


def results() -> Results:
    """Return the measured results by kind of run, and by subject."""
    found: Results = json.loads(RESULTS.read_text())
    return found


def record_result(kind: str, subject: str, **figures: float | str) -> None:
    """Replace the previous results of a run."""
    found = results()
    found.setdefault(kind, {})[subject] = figures
    in_order = json.loads(json.dumps(found, sort_keys=True))
    RESULTS.write_text(json_text(in_order) + "\n")


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
    real = found.get("recorded", {})
    values = total(real, "values")
    return "\n".join(
        (
            BEGINNING,
            table(
                ("promise", "document", "invariant"),
                (
                    (
                        invariant.promise,
                        f"[{Path(invariant.document.partition('#')[0]).name}]"
                        f"(../{invariant.document})",
                        invariant.name,
                    )
                    for invariant in INVARIANTS
                ),
            ),
            "## How it is tried\n",
            table(("way", "what it tries", "when", "result"), ways(found)),
            REAL,
            f"{values - total(real, 'different'):,.0f} of {values:,.0f} values are"
            " equal.\n",
            proofs(found.get("ledger", {})),
            LIMITS,
        )
    )


def ways(found: Results) -> Iterator[tuple[str, str, str, str]]:
    """Yield each way of trying the program, with its newest figures."""
    runs, fuzzed = found.get("simulation", {}), found.get("fuzz", {})
    tried = found.get("mutation", {})
    yield (
        "tests",
        "each module, with the real client and a simulated server; in random order,"
        " with other work on both processors",
        "each change",
        random_order(found.get("order", {})),
    )
    yield (
        "plain reference",
        "the values that join lists, against a second program that follows the"
        " contract",
        "each change",
        "[equal](#compared-with-real-servers)",
    )
    yield (
        "`python -m simulation`",
        "the whole program but its sockets. Each seed is a world of its own: other"
        " accounts, settings and weather",
        "each change, each release",
        f"{total(runs, 'days') / 365:,.2f} years of"
        f" {sum(len(str(of['seeds']).split()) for of in runs.values()):,} seeds,"
        f" {total(runs, 'requests'):,.0f} requests, {total(runs, 'looks'):,.0f} looks"
        f" at invariants. {probes(found.get('probes', {}).get('reached', {}))}"
        " It found fifteen defects, all mended",
    )
    yield (
        "`python -m simulation.torture`",
        "each call of a short scenario fails once, with each error that it may have:"
        " files, names, threads, memory",
        "each release",
        "the invariants hold, and the log has no traceback. It found six defects, all"
        " mended",
    )
    yield (
        "`python -m simulation.planted`",
        "bugs that we know, for a simulated month each",
        "each release",
        planted_bugs(found.get("planted", {})),
    )
    yield (
        "`python -m checks.mutation`",
        "whether the tests notice one small mistake: `<` for `<=`, a call left out, a"
        " swapped pair of arguments. Some change nothing that anyone can see",
        "each release",
        f"{share(tried)}. The lowest of a package is {lowest(tried)}",
    )
    mistakes = found.get("mistakes", {})
    yield (
        "`python -m checks.mutation --mistakes 200`",
        "the same with mistakes that tired people make, all kinds alike: a missing await,"
        " a wrong cache key, a state that is not reset",
        "each release",
        f"{share(mistakes)}; {total(mistakes, 'refused'):.0f} more by mypy or ruff."
        f" The lowest of a kind is {lowest(mistakes)}. Of the newest seed, 8401, they"
        " noticed 110 of 120",
    )
    yield (
        "`make fuzz`",
        "decoders, parsers and protocols, with inputs that reach new code; the corpus"
        " at each change",
        "each release",
        f"{total(fuzzed, 'executions'):,.0f} inputs in {total(fuzzed, 'minutes'):,.0f}"
        " minutes of a processor. It found three defects, all mended",
    )


def share(tried: Figures) -> str:
    """Return how many mistakes the tests noticed."""
    mutants, killed = total(tried, "mutants"), total(tried, "killed")
    part = killed / max(mutants, 1)
    return f"noticed {killed:,.0f} of {mutants:,.0f} ({part:.0%})"


def lowest(tried: Figures) -> str:
    """Return the subject whose tests noticed the smallest share, with the share."""
    shares = {
        name: float(of["killed"]) / max(float(of["mutants"]), 1)
        for name, of in tried.items()
    }
    name = min(sorted(shares), key=lambda name: shares[name])
    return f"{shares[name]:.0%}, `{name}`"


def probes(reached: Mapping[str, float | str]) -> str:
    """Return how often the simulation reached its probes."""
    counts = {name: int(reached.get(name, 0)) for name in NAMES}
    return (
        f"It reached {sum(map(bool, counts.values()))} of {len(counts)} rare lines of"
        f" `simulation/probes.txt`, each {min(counts.values()):,} times or more."
    )


def random_order(runs: Figures) -> str:
    return "; ".join(
        f"{kind}: {of['runs']} runs, the last {of['passed']} without a failure"
        for kind, of in sorted(runs.items(), reverse=True)
    )


def planted_bugs(planted: Figures) -> str:
    """Return how many bugs were found, how soon, and which were not."""
    lines = (RESULTS.parents[1] / "simulation/planted.txt").read_text().splitlines()
    listed = {line.partition(" | ")[0] for line in lines}
    tried = {name: of for name, of in sorted(planted.items()) if name in listed}
    days = [float(of["days"]) for of in tried.values() if of["by"]]
    missed = "; ".join(name for name, of in tried.items() if not of["by"])
    return (
        f"{len(tried)} of {len(listed)} bugs tried, {len(days)} found after at most"
        f" {max(days, default=0):.2f} days. Not found: {missed}"
    )


def proofs(ledger: Figures) -> str:
    """Return how many families are not 0 in a recorded body."""
    proven = sum(not of["reason"] for of in ledger.values())
    return (
        f"{proven} of {len(ledger)} families are not 0 in a body that a real server has"
        " sent. `tools/correctness.json` has the file and the path of each, or why"
        " there is none.\n"
    )


def total(figures: Figures, name: str) -> float:
    """Return the sum of one figure over all subjects."""
    return sum(float(of[name]) for of in figures.values())

"""Run checks before a release: `python -m checks.acceptance [NAME …]`, or all."""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from checks.acceptance import (
    boards,
    chart,
    collector,
    distributions,
    events,
    helm,
    images,
    installing,
    linters,
    package,
    release,
    released,
    roots,
    service,
    suites,
)
from checks.acceptance.check import Check, Failed, Missing

BUILT = (
    Check("release", released.release),
    Check("lintian", package.lintian),
    *(Check(f"deb-{number}", package.packaged(number)) for number in roots.SUITES),
    Check("upgrade", installing.check_upgrade),
    *(Check(f"boot-{number}", service.boots(number)) for number in roots.SUITES),
    Check("image", images.image),
    Check("container-page", images.page),
    Check("event-kills", events.kills),
)
"""Checks of the built packages: they are installed, booted and killed."""

OTHERS = (
    Check("source", release.source),
    Check("debian-source", distributions.debian_source),
    Check("rpm", distributions.rpm),
    Check("pythons", suites.pythons),
    Check("lowest", suites.lowest),
    Check("workflows", linters.actionlint),
    Check("sslyze", linters.sslyze),
    Check("hadolint", linters.hadolint),
    Check("checkov", linters.checkov),
    Check("helm-lint", helm.lint),
    Check("helm-valid", helm.valid),
    Check("helm-refused", helm.refused),
    Check("helm-kept", helm.kept),
    Check("helm-page", helm.documented),
    Check("helm-rules", helm.monitoring),
    Check("helm-runs", chart.check_examples),
    Check("alloy", events.alloy),
    Check("collector", collector.collector),
    Check("rsyslog", events.rsyslog),
    Check("no-proxy", linters.no_proxy),
    Check("prometheus-newest", suites.prometheus),
    Check("pint", linters.pint),
    Check("boards", boards.check),
    Check("dashboards", linters.dashboards),
    Check("simulation", suites.month),
    Check("torture", suites.torture),
)

TIMED = (Check("thorough", suites.thorough),)
"""Checks that measure seconds. They run alone, at the end."""

CHECKS = (*BUILT, *OTHERS, *TIMED)


class Row(Struct, frozen=True):
    """The result of a check."""

    name: str
    outcome: str
    seconds: float
    seen: str


_ROW = "| {:<17} | {:<7} | {:>5} | {}"


def main() -> None:
    # A check that is terminated must stop its own programs, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    parser = argparse.ArgumentParser(
        prog="python -m checks.acceptance", description=__doc__
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rows", type=Path, help="write them there, and no table")
    options = parser.parse_args()
    unknown = set(options.names) - {check.name for check in CHECKS}
    if unknown:
        raise SystemExit(f"no such check: {', '.join(sorted(unknown))}")
    begin = time.monotonic()
    if options.names:
        rows = _run_each([c for c in CHECKS if c.name in options.names], options.rows)
    else:
        rows = _run_halves() + _run_each(TIMED, None)
    if options.rows is None:
        print(*_table(rows), f"took {time.monotonic() - begin:.0f} s", sep="\n")
    raise SystemExit(any(row.outcome == "FAILED" for row in rows))


def _table(rows: list[Row]) -> Iterator[str]:
    yield _ROW.format("check", "outcome", "s", "seen")
    for row in rows:
        first, *more = row.seen.splitlines() or [""]
        yield _ROW.format(row.name, row.outcome, f"{row.seconds:.0f}", first)
        for line in more:
            yield _ROW.format("", "", "", line)


def _run_each(checks: Iterable[Check], path: Path | None) -> list[Row]:
    rows: list[Row] = []
    for check in checks:
        rows.append(_run_check(check))
        if path is not None:  # After each check, because the process may be killed.
            path.write_bytes(msgspec.json.encode(rows))
    return rows


def _run_halves() -> list[Row]:
    """Run both halves at once, each in its own process."""
    with suppress(Missing):
        helm.program()  # the only program that both halves build
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        halves = {folder / "built": BUILT, folder / "others": OTHERS}
        started = []
        for rows, half in halves.items():
            names = [check.name for check in half]
            program = (sys.executable, "-m", "checks.acceptance", f"--rows={rows}")
            started.append(stack.enter_context(subprocess.Popen([*program, *names])))
            stack.callback(started[-1].terminate)
        for each in started:
            each.wait()
        found = [
            row
            for rows in halves
            if rows.exists()
            for row in msgspec.json.decode(rows.read_bytes(), type=list[Row])
        ]
    lost = {check.name for check in (*BUILT, *OTHERS)} - {row.name for row in found}
    return found + [Row(name, "FAILED", 0, "it was ended") for name in sorted(lost)]


def _run_check(check: Check) -> Row:
    print(f"{check.name} …", flush=True)  # The table is printed at the very end.
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="api-exporter-acceptance-"))
    try:
        outcome, seen = "ok", check.run(folder)
    except Missing as missing:
        outcome, seen = "skipped", f"missing: {missing}"
    except Failed as failed:
        outcome, seen = "FAILED", str(failed)
    except Exception:  # noqa: BLE001 - the others' rows must not be lost
        outcome, seen = "FAILED", traceback.format_exc()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - begin
    print(f"{check.name}: {outcome}, {seconds:.0f} s: {seen}", flush=True)
    return Row(check.name, outcome, seconds, seen)


if __name__ == "__main__":
    main()

"""The command: `python -m acceptance [NAME …]`; without names, every check there is."""

import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from acceptance import (
    chart,
    critics,
    door,
    events,
    helm,
    images,
    installing,
    kubernetes,
    monitoring,
    package,
    proxies,
    pythons,
    release,
    released,
    roots,
    service,
    workflows,
)
from acceptance.check import Check, Failed, Missing

CHECKS = (
    Check("wheel", release.wheel),
    Check("source", release.source),
    Check("release", released.release),
    Check("lintian", package.lintian),
    *(Check(f"deb-{number}", package.packaged(number)) for number in roots.SUITES),
    Check("workflows", workflows.actionlint),
    Check("pythons", pythons.pythons),
    Check("lowest", pythons.lowest),
    Check("sslyze", door.sslyze),
    Check("handshakes", door.handshakes),
    *(
        Check(f"debian-{number}", installing.installs(number))
        for number in roots.SUITES
    ),
    Check("upgrade", installing.upgrades),
    *(Check(f"boot-{number}", service.boots(number)) for number in roots.SUITES),
    Check("image", images.image),
    Check("static-image", images.static),
    Check("hadolint", critics.hadolint),
    Check("checkov", critics.checkov),
    Check("kustomize", kubernetes.builds),
    Check("kube-score", kubernetes.score),
    Check("helm-lint", helm.lint),
    Check("helm-valid", helm.valid),
    Check("helm-refused", helm.refused),
    Check("helm-names", helm.names),
    Check("helm-page", helm.documented),
    Check("helm-score", helm.score),
    Check("helm-rules", helm.monitoring),
    Check("helm-runs", chart.runs),
    Check("event-kills", events.kills),
    Check("alloy", events.alloy),
    Check("rsyslog", events.rsyslog),
    Check("no-proxy", proxies.no_proxy),
    Check("pint", monitoring.pint),
    Check("dashboards", monitoring.dashboards),
)

_ROW = "| {:<14} | {:<7} | {:>5} | {}"


def main() -> None:
    # So that a check which is ended leaves nothing running either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    wanted = sys.argv[1:]
    unknown = set(wanted) - {check.name for check in CHECKS}
    if unknown:
        raise SystemExit(f"no such check: {', '.join(sorted(unknown))}")
    rows = [_tried(check) for check in CHECKS if check.name in wanted or not wanted]
    print(_ROW.format("check", "outcome", "s", "seen"))
    for name, outcome, seconds, seen in rows:
        first, *more = seen.splitlines() or [""]
        print(_ROW.format(name, outcome, f"{seconds:.0f}", first))
        for line in more:
            print(_ROW.format("", "", "", line))
    raise SystemExit(any(outcome == "FAILED" for _, outcome, _, _ in rows))


def _tried(check: Check) -> tuple[str, str, float, str]:
    print(f"{check.name} …", flush=True)  # The table comes at the very end.
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="api-exporter-acceptance-"))
    try:
        outcome, seen = "ok", check.run(folder)
    except Missing as missing:
        outcome, seen = "skipped", f"missing: {missing}"
    except Failed as failed:
        outcome, seen = "FAILED", str(failed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - begin
    print(f"{check.name}: {outcome}, {seconds:.0f} s: {seen}", flush=True)
    return check.name, outcome, seconds, seen


if __name__ == "__main__":
    main()

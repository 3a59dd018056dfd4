"""The committed alerts of findings: `python -m tools.prometheus` writes them.

They stand below the others in `deploy/prometheus/alerts.yml`; a test fails if they are
stale. A new finding becomes a warning in `thresholds.json`; another severity is set
there.
"""

import json
from itertools import groupby
from pathlib import Path

from api_exporter.attention.finding import FindingKind
from api_exporter.subjects.table import FINDERS
from tools.json_text import json_text

ROOT = Path(__file__).parent.parent

THRESHOLDS = ROOT / "api_exporter/thresholds.json"

ALERTS = ROOT / "deploy/prometheus/alerts.yml"

RULES = ROOT / "deploy/prometheus/rules.yml"

EXPORTER_RUNBOOKS = "http://{{ $labels.instance }}/runbooks"
"""Address of the runbooks in the exporter that an alert is about."""

MARK = "  # Made by `make rules` from the kinds of findings in api_exporter/subjects.\n"

GROUP = """\
  - name: api-exporter-findings
    rules:
"""

RULE = """\
      - alert: {name}
        expr: |
{expressions}
        for: {lasts}
        keep_firing_for: {keep}
        annotations:
          summary: {summary}
          description: {description}
          runbook_url: {runbooks}#{anchor}
"""

# The comparison always holds: linters require one.
EXPRESSION = """\
          max without (finding, object_type, object_id, object) (
            {labelled}
          ) >= 0"""

SERIES = "api_exporter_finding_since_timestamp_seconds{%s}"

KINDS = [kind for finder in FINDERS for kind in finder.kinds]


def alerts() -> str:
    """Return the file with new alerts of the findings."""
    by_hand = ALERTS.read_text(encoding="utf-8").partition(MARK)[0]
    return "".join([by_hand, MARK, GROUP, *map(_rule, _by_name())])


def _by_name() -> list[list[FindingKind]]:
    named = groupby((k for k in KINDS if k.lasts), lambda kind: kind.name)
    return [list(kinds) for _, kinds in named]


def _rule(kinds: list[FindingKind]) -> str:
    """Return the rule of the kinds of one name, which differ by their objects."""
    kind = kinds[0]
    return RULE.format(
        name=kind.name,
        expressions="\n          or\n".join(map(_expression, kinds)),
        lasts=kind.lasts,
        keep=kind.keep,
        summary=json.dumps(kind.summary, ensure_ascii=False),
        description=json.dumps(kind.description, ensure_ascii=False),
        runbooks=EXPORTER_RUNBOOKS,
        anchor=kind.name.lower(),
    )


def _expression(kind: FindingKind) -> str:
    text = SERIES % f'finding="{kind.name}", object_type="{kind.object_type}"'
    for label, source, pattern in kind.labels:
        # A name may have line ends. PromQL's strings have escapes, as JSON's.
        words = ", ".join(map(json.dumps, (label, "$1", source, f"(?s){pattern}")))
        text = f"label_replace({text}, {words})"
    return EXPRESSION.format(labelled=text)


def add_severities() -> None:
    """Write one severity for each finding into `thresholds.json`, in their order."""
    thresholds = json.loads(THRESHOLDS.read_text(encoding="utf-8"))
    known = thresholds["severities"]
    thresholds["severities"] = {k.name: known.get(k.name, "warning") for k in KINDS}
    THRESHOLDS.write_text(json_text(thresholds) + "\n", encoding="utf-8")


if __name__ == "__main__":
    add_severities()
    ALERTS.write_text(alerts(), encoding="utf-8")

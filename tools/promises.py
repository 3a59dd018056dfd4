"""The names that 1.x promises to users, one a line.

`python -m tools.promises` adds new names to `tools/promises.txt`. It removes no name:
edit the file for that (docs/reference.md).
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml
from msgspec.structs import fields

from api_exporter.attention.thresholds import default_thresholds
from api_exporter.checking.report import CheckDocument
from api_exporter.cli import CommandOptions
from api_exporter.ports import REASONS
from api_exporter.report.document import Document
from api_exporter.settings.definitions import SETTINGS
from api_exporter.subjects.table import COLLECTORS, FINDERS, RESOURCE_BY_NAME
from api_exporter.web.context import PROFILES_PATH
from api_exporter.web.peer_table import TargetLabels
from tests.web.watched import Watched
from tools.chart import VALUES
from tools.documents import ROOT, metrics
from tools.prometheus import ALERTS, RULES

FILE = ROOT / "tools/promises.txt"
LEVELS = {"debug", "info", "warn", "error", "failure"}


def promises() -> set[str]:
    """Return all names of now."""
    found: set[str] = set()
    for kind, names in (
        ("metric", _metrics()),
        ("finding", _findings()),
        ("setting", (setting.name for setting in SETTINGS)),
        ("collector", (collector.name for collector in COLLECTORS)),
        ("resource", RESOURCE_BY_NAME),
        ("reason", REASONS),
        ("threshold", _nested(msgspec.to_builtins(default_thresholds()))),
        ("path", (f"/{path}" for path in _paths())),
        ("label of /sd", (field.encode_name for field in fields(TargetLabels))),
        ("/status.json", _keys(msgspec.json.schema(Document))),
        ("--check --json", _keys(msgspec.json.schema(CheckDocument))),
        ("option", _options()),
        ("alert", _rules("alert")),
        ("rule", _rules("record")),
        ("log field", _log_fields()),
        ("chart value", _nested(yaml.safe_load(VALUES.read_text()))),
    ):
        found.update(f"{kind} {name}" for name in names)
    return found


def _metrics() -> Iterator[str]:
    """Yield name, type and labels of each family, personal labels too."""
    for row in metrics().split("\n"):
        if row.startswith(("| `api_exporter", "| `netbird")):
            name, kind, labels, *_ = row[2:].replace("`", "").split(" | ")
            yield f"{name} {kind} {labels.replace('_,', ',').strip('–')}".strip()


def _findings() -> Iterator[str]:
    """Yield name and type of the object of each kind of finding."""
    for finder in FINDERS:
        yield from (f"{kind.name} {kind.object_type}" for kind in finder.kinds)


def _paths() -> Iterator[str]:
    for account in ("", "acme"):  # only named accounts have targets of their own
        yield from Watched(lookup=True, name=account).tree.pages
    yield PROFILES_PATH


def _keys(schema: object) -> Iterator[str]:
    """Yield the keys of a JSON schema and of those inside of it."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        for inner in schema.values():
            yield from _keys(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _keys(inner)


def _nested(values: dict[str, object], parent: str = "") -> Iterator[str]:
    """Yield the keys of a table and, after a dot, those of the tables inside of it."""
    for key, value in values.items():
        yield f"{parent}{key}"
        if isinstance(value, dict):
            yield from _nested(value, f"{parent}{key}.")


def _options() -> Iterator[str]:
    for name, *_ in [*CommandOptions.optFlags, *CommandOptions.optParameters]:
        yield f"--{name}"


def _rules(kind: str) -> Iterator[str]:
    for path in (ALERTS, RULES):
        text = path.read_text(encoding="utf-8")
        yield from re.findall(rf"^ *-? *{kind}: (\S+)$", text, re.MULTILINE)


def _log_fields() -> Iterator[str]:
    """Yield the fields of all log lines: keywords of the logger, keys of a LogLine."""
    transitions = (ROOT / "api_exporter/refresh/transitions.py").read_text()
    nodes = list(ast.walk(ast.parse(transitions)))
    fields_of_lines = [
        argument
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "LogLine"
        for argument in node.args[2:]
    ]
    named = {ast.unparse(argument) for argument in fields_of_lines}
    values = (
        node.value
        for node in nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in named
    )
    mappings = [m for m in (*fields_of_lines, *values) if isinstance(m, ast.Dict)]
    assert len(mappings) == len(fields_of_lines), "fields of a LogLine: no literal dict"
    for mapping in mappings:
        yield from (ast.literal_eval(key) for key in mapping.keys if key)
    for path in (ROOT / "api_exporter").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _is_logging(node.func):
                for word in node.keywords:
                    assert word.arg, (
                        f"{path}: no names of fields in {ast.unparse(node)}"
                    )
                    yield word.arg


def _is_logging(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in LEVELS
        and ast.unparse(function.value).endswith("log")
    )


def kept() -> set[str]:
    """Return the names of the committed file."""
    return set(FILE.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    lines = sorted(promises() | (kept() if FILE.exists() else set()))
    Path(FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")

"""JSON as people read it: what fits on a line stands on one."""

import json

WIDTH = 100


def json_text(value: object, indent: str = "") -> str:
    """Return JSON text without the newline at its end.

    Args:
        indent: the spaces before the line of this value.
    """
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    inner = indent + "  "
    if isinstance(value, list):
        begin, end = "[]"
        parts = [json_text(one, inner) for one in value]
    else:
        begin, end = "{}"
        parts = [f"{json.dumps(k)}: {json_text(v, inner)}" for k, v in value.items()]
    return f"{begin}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{end}"

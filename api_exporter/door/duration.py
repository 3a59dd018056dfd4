"""Durations as Go writes them."""

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_PART = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"

ALLOWED = "a duration such as 1s, 1m30s or 100ms; 0 for none"


def seconds(text: str) -> float:
    """Seconds from `1m30s` or `0`; raises ValueError."""
    if text == "0":
        return 0.0
    if not re.fullmatch(f"({_PART})+", text, re.ASCII):
        raise ValueError
    return sum(
        float(number) * _UNITS[re.sub("[µμ]", "u", unit)]
        for number, unit in re.findall(_PART, text)
    )

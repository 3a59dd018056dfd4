"""Fuzzing with coverage: `python -m fuzz TARGET --minutes M`, or `make fuzz`.

Each target is a module. Its `attempt` takes some bytes and raises where a property does
not hold; its `SEEDS` are where atheris begins. The inputs that reach most code are kept
in `corpus`, and `tests/test_fuzz.py` tries them again with each Python.
"""

TARGETS = (
    "bodies",
    "gzip",
    "web_config",
    "accept",
    "discovery_query",
    "connect",
    "settings",
)

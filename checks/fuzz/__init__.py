"""Fuzzing with coverage: `python -m checks.fuzz TARGET --minutes M`, or `make fuzz`.

Each target is a module. Its `attempt` takes bytes and raises an error if a property
does not hold. Its `SEEDS` are the first inputs of atheris. `corpus` keeps the inputs
that reach most code, and `tests/test_fuzz.py` runs them with each Python.
"""

TARGETS = (
    "bodies",
    "gzip",
    "web_config",
    "accept",
    "discovery_query",
    "connect",
    "settings",
    "access_page",
    "lookup",
)

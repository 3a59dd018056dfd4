"""Inherited variables that change or break libraries. This imports nothing else.

The variables of OpenSSL, Python and glibc stay: they are meant for all programs.
"""

import re
from collections.abc import MutableMapping

# PROMETHEUS_MULTIPROC_DIR of another service makes prometheus_client write files there.
# PROMETHEUS_DISABLE_CREATED_SERIES and others would change the metrics.
# ZOPE_INTERFACE_STRICT_IRO breaks each TLS connection of Twisted.
# A wrong PY_SAX_PARSER ends the import of twisted.web.
# With POSIXLY_CORRECT, no option may follow the path of --health.
_HARMFUL = re.compile(
    "(?i:PROMETHEUS_.*)|ZOPE_INTERFACE_.*|PY_SAX_PARSER|POSIXLY_CORRECT"
)

MIN_COLUMNS = 40
"""Characters of a terminal's line below which Twisted cannot print the help."""


def is_harmful(name: str) -> bool:
    return _HARMFUL.fullmatch(name) is not None


def remove_harmful_variables(environ: MutableMapping[str, str]) -> None:
    """Remove variables that other programs need, but that change or break libraries."""
    for name in filter(is_harmful, tuple(environ)):
        del environ[name]
    columns = environ.get("COLUMNS", "80")
    if not columns.isdecimal() or int(columns) < MIN_COLUMNS:
        del environ["COLUMNS"]

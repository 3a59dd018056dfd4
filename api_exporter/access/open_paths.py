"""WEB_OPEN_PATHS: pages that need no credentials, although others do."""

from collections.abc import Set

from api_exporter.access.methods import AuthenticationMethod
from api_exporter.settings.errors import ConfigurationError, quote_value

_INCLUDED = {"/sd": {"/sd/accounts"}, "/lookup": {"/lookup.csv", "/lookup.json"}}
"""Paths besides that of the metrics, and those that they include."""


class OpenPaths(AuthenticationMethod):
    """Pages that need no credentials; a forbidden path raises ConfigurationError."""

    def __init__(self, paths: Set[str], metrics_path: str) -> None:
        for path in sorted(paths - {metrics_path, *_INCLUDED}):
            raise ConfigurationError(
                f"WEB_OPEN_PATHS: {quote_value(path)} is not allowed: it must be"
                f" {metrics_path}, /sd or /lookup"
            )
        included = (more for path, more in _INCLUDED.items() if path in paths)
        self._paths = frozenset(paths).union(*included)

    @property
    def is_required(self) -> bool:
        return False

    def is_open(self, path: str) -> bool:
        return path in self._paths

    def describe(self) -> str:
        paths = ", ".join(sorted(self._paths))
        return f"no password or token required: {paths}" if paths else ""

"""WEB_OPEN_PATHS: pages for everybody, although others have to show credentials."""

from typing import TYPE_CHECKING, Self

from api_exporter.access.ways_in import WayIn
from api_exporter.settings.errors import ConfigurationError, shown

if TYPE_CHECKING:
    from api_exporter.access.configuration import AccessControl


class OpenPaths(WayIn):
    """A page is asked for, and that is enough."""

    def __init__(self, paths: frozenset[str]) -> None:
        self._paths = paths

    @classmethod
    def configured(cls, access: "AccessControl") -> Self | None:
        metrics, wanted = access.settings.metrics_path, access.settings.web_open_paths
        for path in sorted(wanted - {metrics, "/sd"})[:1]:
            problem = (
                f"WEB_OPEN_PATHS: {shown(path)} is not allowed: it must be {metrics}"
                " or /sd"
            )
            access.errors.append(ConfigurationError(problem))
        return cls(wanted | {"/sd/accounts"} if "/sd" in wanted else wanted)

    def opens(self, path: str) -> bool:
        return path in self._paths

    def describe(self) -> str:
        paths = ", ".join(sorted(self._paths))
        return f"no password or token required: {paths}" if paths else ""

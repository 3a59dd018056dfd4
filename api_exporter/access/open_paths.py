"""WEB_OPEN_PATHS: pages for everybody, although others have to show credentials."""

from typing import Self

from api_exporter.access.ways_in import Sources, WayIn
from api_exporter.settings.errors import ConfigurationError


class OpenPaths(WayIn):
    """A page is asked for, and that is enough."""

    def __init__(self, paths: frozenset[str]) -> None:
        self._paths = paths

    @classmethod
    def configured(cls, sources: Sources) -> Self | None:
        metrics, wanted = sources.settings.metrics_path, sources.settings.web_open_paths
        for path in sorted(wanted - {metrics, "/sd"})[:1]:
            problem = f"WEB_OPEN_PATHS: {path!r} is neither {metrics} nor /sd"
            sources.errors.append(ConfigurationError(problem))
        return cls(wanted | {"/sd/accounts"} if "/sd" in wanted else wanted)

    def opens(self, path: str) -> bool:
        return path in self._paths

    def describe(self) -> str:
        return f"open to all: {', '.join(sorted(self._paths))}" if self._paths else ""

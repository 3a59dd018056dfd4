"""Which build this is. The build itself writes the module with commit and time."""

from importlib import import_module

from msgspec import Struct

from api_exporter._version import __version__


class Build(Struct, frozen=True, kw_only=True):
    """What was built.

    Attributes:
        commit: of the source tree, "" where the build did not embed it.
        built: ISO 8601 in UTC, "" likewise.
    """

    version: str
    commit: str = ""
    built: str = ""

    def __str__(self) -> str:
        """What `--version` prints."""
        return f"api-exporter {self.details}"

    @property
    def details(self) -> str:
        return " ".join(filter(None, (self.version, self.commit, self.built)))


def this_build(embedded: str = "api_exporter._build") -> Build:
    """The build that is running; a source tree has no embedded module."""
    version = __version__.public()
    try:
        module = import_module(embedded)
    except ModuleNotFoundError:
        return Build(version=version)
    return Build(version=version, commit=module.COMMIT, built=module.BUILT)

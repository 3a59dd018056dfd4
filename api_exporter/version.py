"""The version of this build. A build adds a module with its commit and time."""

from importlib import import_module

from msgspec import Struct

from api_exporter._version import __version__


class Build(Struct, frozen=True, kw_only=True):
    """The identity of a build.

    Attributes:
        commit: of the source tree, "" if the build did not embed it.
        built: ISO 8601 in UTC, "" as for `commit`.
    """

    version: str
    commit: str = ""
    built: str = ""

    def __str__(self) -> str:
        """Return the line that `--version` prints."""
        return f"api-exporter {self.details}"

    @property
    def details(self) -> str:
        return " ".join(filter(None, (self.version, self.commit, self.built)))


def this_build(embedded: str = "api_exporter._build") -> Build:
    """Return the running build; a source tree has no embedded module."""
    version = __version__.public()
    try:
        module = import_module(embedded)
    except ModuleNotFoundError:
        return Build(version=version)
    return Build(version=version, commit=module.COMMIT, built=module.BUILT)

"""Access control as an optional part: it is imported only if its settings are set."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from twisted.internet.posixbase import PosixReactorBase
from twisted.python.threadpool import ThreadPool
from twisted.web.resource import IResource

from api_exporter.serving.site import BoundedSite, OpenSite
from api_exporter.settings.definitions import ACCESS_SECTION, SECTIONS, Settings

if TYPE_CHECKING:
    from api_exporter.access.control import AccessControl


def load(
    settings: Settings, reactor: PosixReactorBase, threads: Callable[[], ThreadPool]
) -> "AccessControl | None":
    """Load access control, None without settings; raise ConfigurationError."""
    if not any(getattr(settings, s.name.lower()) for s in SECTIONS[ACCESS_SECTION]):
        return None
    from api_exporter.access import control, passwords  # noqa: PLC0415

    compare = passwords.compare_in_thread(reactor, threads)
    return control.load(settings, reactor.seconds, compare)


def make_site(
    access: "AccessControl | None",
    tree: IResource,
    reactor: PosixReactorBase,
    *,
    max_connections: int,
    registry: CollectorRegistry,
) -> BoundedSite:
    """Return the HTTP server of the pages, with access control if it is configured."""
    if access is None:
        return OpenSite(tree, reactor, max_connections)
    from api_exporter.access.site import ProtectedSite  # noqa: PLC0415

    return ProtectedSite(
        tree, reactor, access, max_connections=max_connections, registry=registry
    )

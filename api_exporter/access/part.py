"""Access control as an optional part: it is imported where its settings are set."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool
from twisted.web.resource import IResource
from twisted.web.server import Request

from api_exporter.serving.channel import BodilessRequest
from api_exporter.serving.site import BoundedSite
from api_exporter.serving.visibility import ALL
from api_exporter.settings.definitions import ACCESS, SECTIONS, Settings

if TYPE_CHECKING:
    from api_exporter.access.configuration import AccessControl

log = Logger()


def load(
    settings: Settings, reactor: PosixReactorBase, threads: Callable[[], ThreadPool]
) -> "AccessControl | None":
    """Who may come in, None where everybody may; raises ConfigurationError.

    Args:
        threads: makes those in which passwords are compared.
    """
    if not any(getattr(settings, s.name.lower()) for s in SECTIONS[ACCESS]):
        return None
    from api_exporter.access import configuration, passwords  # noqa: PLC0415

    compare = passwords.compare_in_thread(reactor, threads)
    return configuration.load(settings, reactor.seconds, compare)


class Frontend(BoundedSite):
    """The HTTP server. As long as nobody says more, a client may know of no account.

    Attributes:
        encrypt: puts it behind TLS, if anything does.
    """

    encrypt: Callable[[IProtocolFactory], IProtocolFactory] | None = None

    def warn_exposed(self) -> None:
        """Called where others than this machine can reach it."""
        log.warn(
            "Metrics are readable by anyone who can connect: no password, token or"
            " client certificate is required (see WEB_CONFIG_FILE)"
        )

    def reload(self) -> None:
        """Look at the files that say who may come in."""


class OpenSite(Frontend):
    """Shows everything to whoever comes."""

    def getResourceFor(self, request: Request) -> IResource:
        assert isinstance(request, BodilessRequest)
        request.accounts = ALL
        return super().getResourceFor(request)


def make_site(
    access: "AccessControl | None",
    tree: IResource,
    reactor: PosixReactorBase,
    *,
    max_connections: int,
    registry: CollectorRegistry,
) -> Frontend:
    """The HTTP server of the pages, behind access control if there is any."""
    if access is None:
        return OpenSite(tree, reactor, max_connections)
    from api_exporter.access.authentication import ProtectedSite  # noqa: PLC0415

    return ProtectedSite(
        tree, reactor, access, max_connections=max_connections, registry=registry
    )

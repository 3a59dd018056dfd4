"""The way in, as the settings want it. Nobody pays for a door who wants none."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from prometheus_client import CollectorRegistry
from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool
from twisted.web.resource import IResource
from twisted.web.server import Request

from api_exporter.serving.authorization import ALL
from api_exporter.serving.channel import BodilessRequest
from api_exporter.serving.site import BoundedSite
from api_exporter.settings.definitions import Settings

if TYPE_CHECKING:
    from api_exporter.door.front import Front

log = Logger()


def front(settings: Settings, seconds: Callable[[], float]) -> "Front | None":
    """Who may come in, as files say, None where everybody may.

    Raises ConfigurationError.
    """
    wanted = (
        settings.web_config_file,
        settings.web_bearer_tokens_file,
        settings.web_open_paths,
    )
    if not any(wanted):
        return None
    from api_exporter.door.front import opened  # noqa: PLC0415

    return opened(settings, seconds)


class Way(Struct, frozen=True):
    """What listens, and how.

    Attributes:
        secured: puts it behind TLS, if anything does.
        exposed: called where others than this machine can reach it.
        look: looks at the files that say who may come in.
    """

    site: BoundedSite
    secured: Callable[[IProtocolFactory], IProtocolFactory] | None
    exposed: Callable[[], None]
    look: Callable[[], None]


def way(
    front: "Front | None",
    tree: IResource,
    reactor: PosixReactorBase,
    *,
    max_connections: int,
    registry: CollectorRegistry,
    threads: Callable[[], ThreadPool],
) -> Way:
    """The pages behind the door, if there is any.

    Args:
        threads: makes those in which passwords are compared.
    """
    if front is None:
        site = _OpenSite(tree, reactor, max_connections)
        return Way(site, None, _everybody, lambda: None)
    from api_exporter.door.compare import in_thread  # noqa: PLC0415
    from api_exporter.door.site import guarded  # noqa: PLC0415

    guarded_site = guarded(
        tree,
        reactor,
        max_connections=max_connections,
        front=front,
        registry=registry,
        compare=in_thread(reactor, threads()),
    )
    return Way(
        guarded_site,
        partial(front.secured, refused=guarded_site.refused)
        if front.encrypted
        else None,
        (lambda: None) if front.guarded else _everybody,
        front.look,
    )


class _OpenSite(BoundedSite):
    """Shows everything to whoever comes."""

    def getResourceFor(self, request: Request) -> IResource:
        assert isinstance(request, BodilessRequest)
        request.accounts = ALL
        return super().getResourceFor(request)


def _everybody() -> None:
    log.warn(
        "everybody who reaches it reads what it knows of the network: it asks for no"
        " password, token or client certificate (see WEB_CONFIG_FILE)"
    )

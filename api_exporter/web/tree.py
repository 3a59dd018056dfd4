"""What is served: one `putChild` a line. It is given what it shows."""

from collections.abc import Callable

from msgspec import Struct
from twisted.web.pages import notFound
from twisted.web.resource import IResource, Resource

from api_exporter.serving.page import ReadOnlyPage
from api_exporter.serving.page_readers import PageReaders
from api_exporter.telemetry.process import ProcessTelemetry
from api_exporter.version import Build
from api_exporter.web.discovery.answers import Answers
from api_exporter.web.discovery.page import Discovery
from api_exporter.web.health import Health
from api_exporter.web.metrics import Metrics
from api_exporter.web.ready import Ready
from api_exporter.web.runbooks import RUNBOOKS, Runbooks
from api_exporter.web.shown import Shown
from api_exporter.web.status.page import Status


class Around(Struct, frozen=True, kw_only=True):
    """What the pages need to know beside what they show.

    Attributes:
        runbooks: where they are.
        simulated: whether the upstream is one of our own.
        readers: who is being sent which page, of all accounts.
        making: makes the answers of service discovery, those of all accounts.
        pprof: the page of profiles, if they are served.
        uptime: seconds since the start.
        seconds: a clock.
        now: seconds since the epoch.
    """

    process: ProcessTelemetry
    build: Build
    metrics_path: str
    runbooks: str
    simulated: bool
    readers: PageReaders
    making: Answers
    pprof: Resource | None
    uptime: Callable[[], float]
    seconds: Callable[[], float]
    now: Callable[[], float]


def of_one(shown: Shown, around: Around) -> Resource:
    """All pages where there is one account."""
    return root(
        status=status(shown, around),
        health=health(shown, around),
        ready=Ready(shown, now=around.now),
        metrics=Metrics(
            shown.pages,
            shown.telemetry.registry,
            around.process.registry,
            in_flight=around.process.scrapes_in_flight,
            readers=around.readers,
            seconds=around.seconds,
        ),
        discovery=Discovery(shown, around.making, now=around.now),
        metrics_path=around.metrics_path,
        pprof=around.pprof,
    )


def status(shown: Shown, around: Around, account: str = "") -> Status:
    """The status page of an account."""
    return Status(
        shown,
        account=account,
        version=around.build.details,
        simulated=around.simulated,
        metrics_path=around.metrics_path,
        runbooks=around.runbooks,
        pprof=around.pprof is not None,
        uptime=around.uptime,
        seconds=around.seconds,
        now=around.now,
    )


def health(shown: Shown, around: Around) -> Health:
    """`/health` of an account."""
    return Health(shown, version=around.build.version, uptime=around.uptime)


def root(
    *,
    status: ReadOnlyPage,
    health: ReadOnlyPage,
    ready: ReadOnlyPage,
    metrics: ReadOnlyPage,
    discovery: ReadOnlyPage,
    metrics_path: str,
    targets: ReadOnlyPage | None = None,
    pprof: Resource | None = None,
) -> Resource:
    """The tree of all pages; whatever is not in it is 404."""
    tree = Resource()
    tree.putChild(b"", status)
    tree.putChild(b"health", health)
    tree.putChild(b"ready", ready)
    tree.putChild(b"sd", discovery)
    tree.putChild(RUNBOOKS.encode(), Runbooks())
    if targets is not None:
        discovery.putChild(b"accounts", targets)
    if pprof is not None:
        debug = notFound()
        debug.putChild(b"pprof", pprof)
        tree.putChild(b"debug", debug)
    *parents, name = metrics_path.strip("/").encode().split(b"/")
    parent: IResource = tree
    for segment in parents:
        child = notFound()
        parent.putChild(segment, child)
        parent = child
    parent.putChild(name, metrics)
    return tree

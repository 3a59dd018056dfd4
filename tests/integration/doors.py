"""A protected site in our own process, and programs that come to its door."""

from prometheus_client import CollectorRegistry
from twisted.internet import reactor
from twisted.internet.base import ReactorBase
from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import TestCase
from twisted.web.resource import Resource
from twisted.web.server import Request

from api_exporter.access.control import AccessControl, load
from api_exporter.access.passwords import compare_in_thread
from api_exporter.access.site import ProtectedSite
from api_exporter.serving.page import TextPage
from api_exporter.settings.environment import read_settings
from tests.access.folder import Folder
from tests.integration.ports import listening
from tests.integration.programs import PATIENCE, program

CURL = (
    "--silent --show-error --max-time 60 --noproxy * --cacert ca.pem --dump-header -"
    " --output /dev/null --write-out %{http_code}"
)


class Hello(TextPage):
    """A page for every client that may connect."""

    def text(self, _request: Request) -> str:
        return "hello\n"


class Ended:
    """The output and status of a program that has ended."""

    def __init__(self, out: bytes, err: bytes, status: int) -> None:
        self.out = out.decode(errors="replace")
        self.err = err.decode(errors="replace")
        self.status = status


class DoorsTestCase(TestCase):
    """A folder for the files, a port, and clients that are real programs."""

    timeout = 2 * PATIENCE

    def setUp(self) -> None:
        self.curl, self.openssl = program("curl"), program("openssl")
        self.folder = Folder(self, self.mktemp())
        self.folder.client.write(self.folder.path, "client")
        assert isinstance(reactor, ReactorBase)
        self.pool = reactor.getThreadPool()

    def access(self, text: str) -> AccessControl:
        """Load the access configuration of a text; raises ConfigurationError."""
        assert isinstance(reactor, ReactorBase)
        found = load(
            read_settings(
                {
                    "UPSTREAM_API_URL": "https://x",
                    "UPSTREAM_API_TOKEN": "x",
                    "WEB_CONFIG_FILE": str(self.folder.write(text)),
                }
            ),
            lambda: 0.0,
            compare_in_thread(reactor, lambda: self.pool),
        )
        assert found is not None
        return found

    def serve(self, text: str) -> AccessControl:
        """Serve with this file."""
        access = self.access(text)
        self.registry = CollectorRegistry()
        tree = Resource()
        tree.putChild(b"", Hello())
        tree.putChild(b"health", Hello())
        assert isinstance(reactor, ReactorBase)
        site = ProtectedSite(
            tree, reactor, access, max_connections=100, registry=self.registry
        )
        self.scheme = "https" if access.tls is not None else "http"
        factory = site if site.encrypt is None else site.encrypt(site)
        self.port = listening(self, factory)
        return access

    async def run_program(self, name: str, *arguments: str) -> Ended:
        return Ended(
            *await getProcessOutputAndValue(
                name, arguments, env={}, path=str(self.folder.path)
            )
        )

    async def ask(self, *more: str, scheme: str = "") -> tuple[int, str]:
        """Return the status that curl receives, 0 for none, and the headers."""
        url = f"{scheme or self.scheme}://localhost:{self.port}/"
        ended = await self.run_program(self.curl, *CURL.split(), *more, url)
        return int(ended.out[-3:]), ended.out + ended.err

    async def connect(self, *more: str) -> Ended:
        """Return what openssl's client prints about a connection."""
        shell = ("/bin/sh", "-c", 'exec "$@" </dev/null 2>&1', "sh")
        client = (self.openssl, "s_client", "-connect", f"127.0.0.1:{self.port}")
        return await self.run_program(*shell, *client, *more)

"""Upstreams that never say goodbye: TLS's close_notify is not answered."""

from OpenSSL import SSL
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ServerEndpoint, wrapServerTLS
from twisted.internet.interfaces import (
    IListeningPort,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from twisted.internet.utils import getProcessOutputAndValue
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.server import Site
from zope.interface import implementer

from tests.integration.ports import listening
from tests.integration.programs import SOON, environment, program
from tests.integration.reaching import SECRET, ReachingTestCase


class Deaf(ProtocolWrapper):
    """A server below TLS that ignores the client's closing alert."""

    def dataReceived(self, data: bytes) -> None:
        if data.startswith(b"\x15"):  # an alert, which TLS 1.2 does not hide
            return
        super().dataReceived(data)


class _DeafFactory(WrappingFactory[Deaf]):
    protocol = Deaf
    noisy = False


@implementer(IStreamServerEndpoint)
class _DeafEndpoint:
    def __init__(self, endpoint: IStreamServerEndpoint) -> None:
        self._endpoint = endpoint

    def listen(self, factory: IProtocolFactory) -> Deferred[IListeningPort]:
        return self._endpoint.listen(_DeafFactory(factory))


class GoodbyeTests(ReachingTestCase):
    async def test_check(self) -> None:
        """`--check` and `--once` end all the same."""
        options = self.authority.issue("localhost").server().options()
        options.getContext().set_max_proto_version(SSL.TLS1_2_VERSION)
        endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        secured = wrapServerTLS(options, _DeafEndpoint(endpoint))
        port = listening(self, Site(self.api), secured)
        environ = environment(
            UPSTREAM_API_URL=f"https://localhost:{port}",
            UPSTREAM_API_TOKEN=SECRET,
            UPSTREAM_CA_FILE=self.trusted,
        )
        for option in ("--check", "--once"):
            command = [str(3 * SOON), program("api-exporter"), option]
            out, err, status = await getProcessOutputAndValue(
                program("timeout"), command, environ
            )
            self.assertEqual(0, status, out + err)

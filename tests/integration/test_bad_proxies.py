"""The client through a proxy that does as it likes."""

import time
from base64 import b64encode
from collections.abc import Callable

from twisted.internet import reactor
from twisted.internet.task import deferLater

from api_exporter.ports import UpstreamError
from api_exporter.upstream.client import Client
from tests.integration.ports import listening
from tests.integration.programs import SOON
from tests.integration.proxies import LOGIN, PASSWORD, USER
from tests.integration.puppet import OPENED, Conversation, Puppet
from tests.integration.reaching import SECRET, ReachingTestCase
from tests.logbook import logbook

Answer = Callable[[Conversation], None]


def says(data: bytes, *, close: bool = False) -> Answer:
    """Return the same answer to every request."""

    def answer(conversation: Conversation) -> None:
        conversation.send(data)
        if close:
            conversation.close()

    return answer


def silence(_: Conversation) -> None:
    """No answer, ever."""


def dripping(conversation: Conversation) -> None:
    """A byte now and then, which never makes a head."""

    def drip() -> None:
        if conversation.transport is not None and not conversation.factory.lost:
            conversation.send(b"x")
            deferLater(reactor, 0.1, drip)

    conversation.send(b"HTTP/1.1 200 OK\r\nX: ")
    drip()


class PuppetTestCase(ReachingTestCase):
    """A proxy of our own in between."""

    def through(self, answer: Answer, url: str = "", **settings: str) -> Client:
        """A client behind one that answers so."""
        self.puppet = Puppet(Conversation, answer)
        self.port = listening(self, self.puppet)
        address = f"http://{LOGIN}@127.0.0.1:{self.port}"
        client = self.client(
            url or self.upstream(), **{"UPSTREAM_PROXY": address, **settings}
        )
        self.addCleanup(self.gone, client)
        return client

    async def gone(self, client: Client) -> None:
        """The puppet's conversations end, too."""
        await client.stopService()
        await self.puppet.end()


class GoodTests(PuppetTestCase):
    async def test_secret(self) -> None:
        """In a tunnel the proxy sees no token and no answer, and the NetBird API
        does not see the login at the proxy.
        """
        await self.assert_read(self.through(Conversation.carry))
        [conversation] = self.puppet.connections
        seen = conversation.head + conversation.carried
        self.assertGreater(len(seen), 1000)
        for secret in (SECRET.encode(), b"Bearer", b"api/peers", b'"id"'):
            self.assertNotIn(secret, seen)
        [request] = self.api.requests
        self.assertIsNone(request.getHeader("proxy-authorization"))

    async def test_closed_at_reuse(self) -> None:
        """A tunnel that ends at the moment of its reuse is no failure."""
        for over in (Conversation.close, Conversation.cut):
            client = self.through(Conversation.carry)
            await self.assert_read(client)
            [conversation] = self.puppet.connections
            conversation.dataReceived = lambda _, c=conversation, o=over: o(c)  # type: ignore[method-assign,misc]
            del self.attempts[:]
            await self.assert_read(client)
            self.assertEqual([200], [attempt.status for attempt in self.attempts])
            self.assertEqual(2, len(self.puppet.connections))


class BadTests(PuppetTestCase):
    async def test_echo(self) -> None:
        """An echo of the login in a plain answer is not repeated."""
        login = b64encode(f"{USER}:{PASSWORD}".encode())
        for secret in (login, PASSWORD.encode(), LOGIN.partition(":")[2].encode()):
            body = b'{"message":"who is %b?"}' % secret
            head = b"HTTP/1.1 418 No\r\nContent-Length: %d\r\n\r\n" % len(body)
            client = self.through(says(head + body), "http://localhost:1")
            error = await self.failing(client)
            self.assertEqual("418: who is <token>?", str(error))

    async def test_late(self) -> None:
        """A proxy that hangs costs no more than the time for an attempt."""
        for answer, reason, words in (
            (silence, "proxy", "did not answer CONNECT within 1 s"),
            (says(b"HTTP/1.1 200 O"), "proxy", "did not answer CONNECT within 1 s"),
            (dripping, "proxy", "did not answer CONNECT within 1 s"),
            (says(OPENED), "timeout", "no response within 1 s"),
        ):
            client = self.through(answer, HTTP_TIMEOUT="1s", API_RETRY_ATTEMPTS="3")
            del self.attempts[:]
            error = await self.failing(client)
            self.assertEqual(reason, error.reason, error)
            self.assertIn(words, str(error))
            self.assertEqual(1, len(self.attempts))
            await self.gone(client)

    async def test_stopped(self) -> None:
        """A stop while a proxy hangs leaves no connection and logs nothing."""
        client = self.through(silence)
        book = logbook(self)
        fetching = self.fetch(client)
        probing = client.fetcher.log_reachability()
        while len(self.puppet.connections) < 2:
            await deferLater(reactor, 0.01)
        begin = time.monotonic()
        fetching.cancel()
        probing.cancel()
        await self.gone(client)
        self.assertLess(time.monotonic() - begin, SOON)
        for asked in (fetching, probing):
            failure = self.failureResultOf(asked)
            self.assertNotIsInstance(failure.value, UpstreamError)
        self.assertEqual([], book.lines())


class LogTests(PuppetTestCase):
    async def test_seen(self) -> None:
        """Where the proxy sees the token, a warning says so."""
        url = self.upstream(tls=False)
        client = self.through(silence, url)
        book = logbook(self)
        client.startService()
        [line] = book.lines()
        self.assertEqual(
            f"warning the proxy 127.0.0.1:{self.port} can read the token:"
            " UPSTREAM_API_URL is not https",
            line.partition(" proxy=")[0],
        )

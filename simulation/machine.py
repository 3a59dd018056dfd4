"""The machine of the exporter: its timers, connections and threads.

It has its own time, and all events have one order: nothing here is random.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionRefusedError as NobodyListens
from twisted.internet.error import TimeoutError as NoConnection
from twisted.internet.error import UserError
from twisted.internet.interfaces import (
    IDelayedCall,
    IHostnameResolver,
    IPushProducer,
    IResolutionReceiver,
)
from twisted.internet.protocol import ClientFactory, Factory
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from api_exporter.ports import Compute
from api_exporter.refresh.compute import ComputeThread
from simulation.disk import Hangs
from simulation.link import LATENCY, Link, Server
from tests.memory_reactor import MemoryReactor, Resolver

MAX_CALLS_AT_ONCE = 100_000
"""The limit of calls in one instant. More are an endless loop."""

FOREVER_SECONDS = 1e9
"""Seconds of a delay that never ends."""

THREAD_SECONDS = 0.002
"""Seconds that work in a thread takes."""


class EndlessInstant(Exception):
    """An instant had too many calls."""


class Timers(Clock):
    """A clock that the caller advances. Calls of one instant keep their order."""

    def __init__(self, at: float) -> None:
        super().__init__()
        self.rightNow = at

    def due_at(self) -> float:
        """Return the time of the next call, or infinity if there is none."""
        self._sortCalls()  # A call may have been delayed.
        return self.calls[0].getTime() if self.calls else float("inf")

    def run(self, now: float) -> None:
        """Advance the time to `now` and make all due calls."""
        self.rightNow = max(self.rightNow, now)
        for _ in range(MAX_CALLS_AT_ONCE):
            if self.due_at() > self.rightNow:
                return
            call = self.calls.pop(0)
            call.called = 1
            call.func(*call.args, **call.kw)
        raise EndlessInstant(f"more than {MAX_CALLS_AT_ONCE} calls at once")


class Threads(ThreadPool):
    """A thread pool without threads: a timer does the work a moment later.

    Attributes:
        pending: the timers of work that has not ended.
        hanging: those of work that hangs, which the end of the process ends.
        quick: whether work takes no time now.
    """

    quick = False

    def __init__(self, timers: Timers, work: Callable[[Callable[[], Any]], Any]):
        super().__init__(0, 1)
        self._timers = timers
        self._work = work
        self.pending: set[IDelayedCall] = set()
        self.hanging: set[IDelayedCall] = set()

    def callInThreadWithCallback(  # noqa: N802 - Twisted's name
        self,
        onResult: Callable[[bool, Any], object] | None,  # noqa: N803
        func: Callable[..., Any],
        *args: object,
        **kw: object,
    ) -> None:
        """See ThreadPool. Work runs at the end of its time: inputs must not change."""

        def work(do: Callable[[], Any]) -> None:
            try:
                result = True, do()
            except Hangs as hanging:
                self.hanging.add(begin(hanging.seconds, hanging.finish))
                return
            except Exception:  # noqa: BLE001 - the caller receives the failure
                result = False, Failure()
            if onResult is not None:
                onResult(*result)

        def begin(seconds: float, do: Callable[[], Any]) -> IDelayedCall:
            def end() -> None:
                self.pending.discard(call)
                self.hanging.discard(call)
                work(do)

            call = self._timers.callLater(seconds, end)
            self.pending.add(call)
            return call

        begin(self._delay(), lambda: self._work(lambda: func(*args, **kw)))

    def _delay(self) -> float:
        """Return seconds until the end of work that begins now."""
        return 0.0 if self.quick else THREAD_SECONDS


class OneThread(Threads):
    """A thread that does one piece of work after the other.

    Args:
        next_duration: returns the seconds of the next piece of work.
    """

    def __init__(self, timers: Timers, next_duration: Callable[[], float]) -> None:
        super().__init__(timers, lambda do: do())
        self._next_duration = next_duration
        self._free_at = timers.seconds()

    @property
    def busy(self) -> bool:
        return self._free_at > self._timers.seconds()

    def _delay(self) -> float:
        if self.quick:
            return 0.0
        now = self._timers.seconds()
        self._free_at = max(self._free_at, now) + self._next_duration()
        return self._free_at - now


class Port:
    """A listening port."""

    def __init__(self, machine: "Machine", number: int, factory: Factory) -> None:
        self._machine = machine
        self._number = number
        self.factory = factory

    def getHost(self) -> IPv4Address:  # noqa: N802 - Twisted's name
        return IPv4Address("TCP", "127.0.0.1", self._number)

    def stopListening(self) -> None:  # noqa: N802 - Twisted's name
        self._machine.ports.pop(self._number)
        self.factory.doStop()


class SlowResolver(Resolver):
    """Looks up names in threads, which nothing can stop."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine

    def look_up(self, receiver: IResolutionReceiver, port: int) -> None:
        began, (seconds, is_found) = self._machine.seconds(), self._machine.look_up()

        def end() -> None:
            self._machine.lookups = {c for c in self._machine.lookups if c.active()}
            self._machine.connecting_since = began
            if is_found:
                super(SlowResolver, self).look_up(receiver, port)
            else:
                receiver.resolutionComplete()
            self._machine.connecting_since = None

        if seconds:
            self._machine.lookups.add(self._machine.callLater(seconds, end))
        else:
            end()


class Connector:
    """An attempt to connect."""

    def __init__(
        self, machine: "Machine", factory: ClientFactory, timeout: float
    ) -> None:
        self._machine = machine
        self._factory = factory
        since = machine.connecting_since
        self._began = machine.seconds() if since is None else since
        factory.doStart()
        factory.startedConnecting(self)  # type: ignore[arg-type]
        state = machine.server.connection_state()
        if state == "lost":
            self._call = machine.callLater(timeout, self._fail, NoConnection())
        elif state == "refused":
            self._call = machine.callLater(LATENCY, self._fail, NobodyListens())
        else:
            self._call = machine.callLater(LATENCY, self._connect)

    def getDestination(self) -> IPv4Address:  # noqa: N802 - Twisted's name
        return IPv4Address("TCP", "127.0.0.1", 443)

    def stopConnecting(self) -> None:  # noqa: N802 - Twisted's name
        if self._call.active():
            self._call.cancel()
            self._fail(UserError())

    def _fail(self, why: Exception) -> None:
        self._factory.clientConnectionFailed(self, Failure(why))  # type: ignore[arg-type]
        self._factory.doStop()

    def _connect(self) -> None:
        protocol = self._factory.buildProtocol(self.getDestination())
        if protocol is not None:
            Link(self._machine, self._machine.server, protocol, self._began)


class Machine(Timers, MemoryReactor):  # type: ignore[misc]  # both have no such method
    """The reactor of one process of the exporter.

    Args:
        work: does the work of a thread.
        next_duration: returns the seconds of the next computation.
        look_up: returns the seconds of a name's next look-up, and whether it succeeds.

    Attributes:
        compute_thread: the thread of the exporter's computations.
        compute: computes in this thread.
        log_threads: the threads that write logs.
        request_headers: further headers of requests for the exporter's pages.
        ports: listening ports by number.
        links: open connections.
        lookups: the timers of names that are being looked up.
        connecting_since: when the look-up began that ends now; None if none does.
        request_began: when the newest request began: with its connection, if it is the
            first one.
    """

    request_headers = ""

    def __init__(
        self,
        at: float,
        server: Server,
        work: Callable[[Callable[[], Any]], Any],
        next_duration: Callable[[], float],
        look_up: Callable[[], tuple[float, bool]] = lambda: (0.0, True),
    ) -> None:
        MemoryReactor.__init__(self)
        Timers.__init__(self, at)
        self.server = server
        self.ports: dict[int, Port] = {}
        self.links: dict[Link, None] = {}
        self.look_up = look_up
        self.lookups: set[IDelayedCall] = set()
        self.connecting_since: float | None = None
        self.request_began = at
        self.nameResolver: IHostnameResolver = SlowResolver(self)
        self._threads = Threads(self, work)
        self.log_threads: ThreadPool = self._threads
        self.compute_thread = OneThread(self, next_duration)
        self.compute: Compute = ComputeThread(self, self.compute_thread)  # type: ignore[arg-type]

    @property
    def outlived(self) -> set[IDelayedCall]:
        """Return the timers of work for which the end of the process does not wait."""
        return self.compute_thread.pending | self._threads.hanging | self.lookups

    def run_until(self, end: float) -> None:
        """Run all calls that are due until then, each at its time."""
        while self.due_at() <= end:
            self.run(self.due_at())
        self.run(end)

    def getThreadPool(self) -> ThreadPool:  # noqa: N802 - Twisted's name
        return self._threads

    def callFromThread(  # noqa: N802 - Twisted's name
        self,
        callable: Callable[..., object],  # noqa: A002 - Twisted's name
        *args: object,
        **kw: object,
    ) -> None:
        """Call the function at once, because there are no threads."""
        callable(*args, **kw)

    def installNameResolver(  # noqa: N802 - Twisted's name
        self,
        nameResolver: IHostnameResolver,  # noqa: ARG002, N803
    ) -> IHostnameResolver:
        """Keep the simulated resolver."""
        return self.nameResolver

    def connectTCP(  # noqa: N802 - Twisted's name
        self,
        host: str,  # noqa: ARG002 - there is one
        port: int,  # noqa: ARG002 - the same
        factory: ClientFactory,
        timeout: float = 30,
        bindAddress: object = None,  # noqa: ARG002, N803
    ) -> Connector:
        """See IReactorTCP."""
        return Connector(self, factory, timeout)

    def listenTCP(
        self,
        port: int,
        factory: Factory,
        backlog: int = 50,  # noqa: ARG002
        interface: str = "",  # noqa: ARG002
    ) -> Port:
        """See IReactorTCP."""
        self.ports[port] = made = Port(self, port, factory)
        factory.doStart()
        # Twisted updates the time of an access log each second; there is none.
        if (clock := getattr(factory, "_logDateTimeCall", None)) is not None:
            clock.reset(FOREVER_SECONDS)
        return made

    def get(self, path: str, encoding: str = "identity") -> tuple[int, bytes]:
        """Return status and body of a page. The status of an incomplete one is 0."""
        [port] = self.ports.values()
        client = Client()
        protocol = port.factory.buildProtocol(IPv4Address("TCP", "192.0.2.1", 1))
        assert protocol is not None
        protocol.makeConnection(client)
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        head += f"{self.request_headers}Accept-Encoding: {encoding}\r\n\r\n"
        self.compute_thread.quick = True
        protocol.dataReceived(head.encode())
        for _ in range(MAX_CALLS_AT_ONCE):
            if client.disconnecting or self.due_at() > self.seconds():
                break
            self.run(self.seconds())
        self.compute_thread.quick = False
        is_complete = client.disconnecting
        protocol.connectionLost(Failure(ConnectionError()))
        head_, _, body = bytes(client.value()).partition(b"\r\n\r\n")
        return (int(head_.split()[1]) if is_complete else 0), body


class Client(StringTransport):
    """A client of the exporter's pages that accepts every response."""

    def registerProducer(  # noqa: N802 - Twisted's name
        self, producer: IPushProducer, streaming: bool
    ) -> None:
        assert streaming
        super().registerProducer(producer, streaming)

    def abortConnection(self) -> None:
        self.disconnecting = True

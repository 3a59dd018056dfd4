"""Reactors in memory that do what Twisted's own do only from version 26 on."""

from collections.abc import Callable, Sequence
from typing import ParamSpec

from twisted.internet import testing
from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import (
    IAddress,
    IHostnameResolver,
    IHostResolution,
    IReactorPluggableNameResolver,
    IResolutionReceiver,
)
from zope.interface import implementer

P = ParamSpec("P")


@implementer(IHostResolution)
class Resolution:
    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        """Do nothing: it has ended."""


@implementer(IHostnameResolver)
class Resolver:
    """Every name has the address 127.0.0.1."""

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,  # noqa: N803
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: N803
        addressTypes: Sequence[type[IAddress]] | None = None,  # noqa: ARG002, N803
        transportSemantics: str = "TCP",  # noqa: ARG002, N803
    ) -> IHostResolution:
        resolution = Resolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        self.look_up(resolutionReceiver, portNumber)
        return resolution

    def look_up(self, receiver: IResolutionReceiver, port: int) -> None:
        """Give the receiver the address, and end."""
        receiver.addressResolved(IPv4Address("TCP", "127.0.0.1", port))
        receiver.resolutionComplete()


@implementer(IReactorPluggableNameResolver)
class MemoryReactor(testing.MemoryReactor):
    def __init__(self) -> None:
        super().__init__()
        self.nameResolver: IHostnameResolver = Resolver()

    def installNameResolver(  # noqa: N802
        self, resolver: IHostnameResolver
    ) -> IHostnameResolver:
        previous, self.nameResolver = self.nameResolver, resolver
        return previous

    def callWhenRunning(  # noqa: N802
        self,
        callable: Callable[P, object],  # noqa: A002
        *args: P.args,
        **kw: P.kwargs,
    ) -> None:
        if self.running:
            callable(*args, **kw)
        else:
            super().callWhenRunning(callable, *args, **kw)


class MemoryReactorClock(MemoryReactor, testing.MemoryReactorClock):
    """Timers run when `advance` is called."""

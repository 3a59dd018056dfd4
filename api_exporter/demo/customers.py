"""Many accounts at once: networks of different sizes, each with a token of its own."""

from collections.abc import Callable, Mapping
from zlib import crc32

from twisted.web.resource import Resource
from twisted.web.server import Request

from api_exporter.demo.api import DemoApi
from api_exporter.demo.limiter import Limiter
from api_exporter.demo.network import Network
from api_exporter.settings.credential import base62

SMALLEST = 15
"""Machines: with fewer a network has not all that has to hold at every instant."""

Limit = tuple[int, int] | None


def token(number: int) -> str:
    """The well-formed token of a customer."""
    secret = f"demo{number:026d}"
    return f"nbp_{secret}{base62(crc32(secret.encode()))}"


def names(count: int) -> list[str]:
    """Of so many customers, in order."""
    return [f"customer-{number:03d}" for number in range(1, count + 1)]


def dead(count: int) -> set[int]:
    """Numbers of the two whose token the API does not know."""
    return {2, count}


class Customers(Resource):
    """Serves to each token its own network.

    Args:
        peers: machines of the biggest network.
        limit: requests a minute and burst of each token, if they are limited.
    """

    isLeaf = True

    def __init__(
        self, count: int, *, peers: int, limit: Limit, now: Callable[[], float]
    ) -> None:
        super().__init__()
        self._apis: Mapping[str, DemoApi] = {
            f"Bearer {token(number)}": DemoApi(
                network=Network(
                    SMALLEST + max(0, peers - SMALLEST) * number // count, seed=number
                ),
                token=token(number),
                now=now,
                limiter=None if limit is None else Limiter(*limit),
            )
            for number in range(1, count + 1)
            if number not in dead(count)
        }
        self._any = next(iter(self._apis.values()))

    def render(self, request: Request) -> bytes | int:
        """What the API of the token's customer says; any of them refuses all others."""
        credentials = request.getHeader("Authorization") or ""
        return self._apis.get(credentials, self._any).render(request)

"""Which profiles there are: the table of contents."""

from collections.abc import Callable, Coroutine
from functools import partial

from msgspec import Struct
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from api_exporter.profiling import cpu, heap, threads
from api_exporter.profiling.in_thread import InThread

Work = Coroutine[Deferred[object], object, bytes]
"""A profile being made. Cancelling it ends it and leaves nothing behind."""


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of profile.

    Attributes:
        name: the one that tools ask for.
        uses: what no two profiles can use at the same time.
        seconds: how long it takes when nobody says.
        make: told how many seconds it may take, and when it starts, in seconds since
            the epoch.
    """

    name: str
    title: str
    uses: str
    seconds: int
    make: Callable[[IReactorTime, InThread, int, float], Work]


KINDS = (
    Kind(
        name="profile",
        title="CPU time, by default of the next 30 seconds",
        uses="the CPU sampler",
        seconds=30,
        make=cpu.profile,
    ),
    Kind(
        name="heap",
        title="live memory, by default of the next 5 seconds; "
        "at once and of all times where tracemalloc has run from the start",
        uses="tracemalloc",
        seconds=5,
        make=heap.profile,
    ),
    Kind(
        name="allocs",
        title="the same as heap, where Alloy and Parca look for it",
        uses="tracemalloc",
        seconds=5,
        make=partial(heap.profile, comment="The same live profile as heap."),
    ),
    Kind(
        name="goroutine",
        title="the stacks of all threads now",
        uses="the threads' stacks",
        seconds=1,
        make=threads.profile,
    ),
)

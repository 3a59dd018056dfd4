"""A run: a world from its first step to its last one, or to what is wrong."""

import gc
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import idna
from msgspec import Struct
from twisted.logger import globalLogPublisher

from api_exporter.exposition import incremental, pages, per_record
from simulation.invariants import Checks
from simulation.world import DAY, HOUR, Violation, World

MEMORY = Path("/dev/shm")

CHANGED: dict[ModuleType, dict[str, object]] = {
    per_record: {"SHORTEST": 8, "LONGEST": 24, "SPARSE": 8},
    incremental: {"PIECE_BYTES": 4096},
    pages: {"_SHORT": 512, "_SMALL": 16 * 1024},
    idna: {"encode": lru_cache(idna.encode)},
}
"""Sizes of blocks and pieces: a small account has as many as a large one in the world.
And the upstream's name, which is the same at each request.
"""


class Run(Struct):
    """What came of it.

    Attributes:
        looks: at invariants.
        seconds: of a processor.
        found: what was wrong; None for nothing.
        recent: what happened last.
    """

    seed: int
    days: float
    step: int
    looks: int
    seconds: float
    digest: str
    counts: dict[str, int]
    recent: list[str]
    found: Violation | None = None


def run(seed: int, days: float, until: int | None = None, seconds: float = 0.0) -> Run:
    """Simulate so many days.

    Args:
        until: a step that is the last one.
        seconds: of a processor, in which there are more days.
    """
    memory = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, _changed():
        world = World(seed, Path(folder))
        gc.collect()  # what others left may have something to log
        globalLogPublisher.addObserver(world.history)
        try:
            return _run(world, seed, days, until, seconds)
        finally:
            globalLogPublisher.removeObserver(world.history)
            if world.life is not None:  # what waits for a computation ends with it
                world.life.end()
            world.disk.down()


@contextmanager
def _changed() -> Iterator[None]:
    before = {
        module: {name: vars(module)[name] for name in names}
        for module, names in CHANGED.items()
    }
    for module, values in CHANGED.items():
        vars(module).update(values)
    try:
        yield
    finally:
        for module, values in before.items():
            vars(module).update(values)


def _run(
    world: World, seed: int, days: float, until: int | None, seconds: float
) -> Run:
    checks, found, collected = Checks(world), None, 0.0
    gc.freeze()
    gc.disable()
    begin = time.process_time()
    try:
        world.start()
        for step in world.run():
            checks.look()
            if world.seconds() >= collected + HOUR:
                collected = world.seconds()
                gc.collect()
            enough = world.seconds() >= days * DAY
            if step == until or (enough and time.process_time() - begin >= seconds):
                break
    except Violation as violation:
        found = violation
    except Exception:  # noqa: BLE001 - to be told with seed and step, like all else
        found = Violation("the simulation", traceback.format_exc(limit=-3))
    finally:
        gc.enable()
        gc.unfreeze()
    return Run(
        seed=seed,
        days=world.seconds() / DAY,
        step=world.step,
        looks=checks.made,
        seconds=time.process_time() - begin,
        digest=world.history.digest,
        counts=world.history.counts,
        recent=[*world.history.recent],
        found=found,
    )

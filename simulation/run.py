"""One run of a world, from its first step to its last one or to a violation."""

import gc
import os
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

from api_exporter.exposition import pages, rendering
from simulation.invariants import Checks
from simulation.probes import COUNTS
from simulation.world import DAY, HOUR, Violation, World

MEMORY_FOLDER = Path("/dev/shm")

SMALL_SIZES: dict[ModuleType, dict[str, object]] = {
    rendering: {"CHUNK_SAMPLES": 4, "PIECE_BYTES": 4096},
    pages: {"_MAX_SHORT_BYTES": 512, "_MAX_WHOLE_BYTES": 16 * 1024},
    idna: {"encode": lru_cache(idna.encode)},
}
"""Smaller sizes of blocks and pieces, so that a small account has as many as a large
one. The encoding of the host name is cached, because it is the same in each request."""


class Run(Struct):
    """The result of a run.

    Attributes:
        looks: the number of checked invariants.
        seconds: seconds of processor time.
        found: the violation; "" if there is none.
        recent: the last events.
        reached: how often each probe was reached.
        judged: see `Judge.counts`.
    """

    seed: int
    days: float
    step: int
    looks: int
    seconds: float
    digest: str
    counts: dict[str, int]
    recent: list[str]
    reached: dict[str, int]
    judged: dict[tuple[str, str], int]
    found: str = ""


def run(seed: int, days: float, until: int | None = None) -> Run:
    """Simulate a number of days, or until the world ends.

    Args:
        until: the last step, or None.
    """
    memory = MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, _with_small_sizes():
        world = World(seed, Path(folder))
        gc.collect()  # Objects of earlier runs may log something at their end.
        globalLogPublisher.addObserver(world.history)
        with world.disk.watched():
            try:
                return _run(world, seed, days, until)
            finally:
                globalLogPublisher.removeObserver(world.history)
                if world.exporter is not None:  # A pending computation ends with it.
                    world.exporter.end()


@contextmanager
def _with_small_sizes() -> Iterator[None]:
    before = {
        module: {name: vars(module)[name] for name in names}
        for module, names in SMALL_SIZES.items()
    }
    for module, values in SMALL_SIZES.items():
        vars(module).update(values)
    try:
        yield
    finally:
        for module, values in before.items():
            vars(module).update(values)


def _run(world: World, seed: int, days: float, until: int | None) -> Run:
    checks, found, collected_at = Checks(world), "", 0.0
    gc.freeze()
    gc.disable()
    began_at = time.process_time()
    COUNTS.clear()
    try:
        world.start()
        for step in world.run():
            checks.check()
            if world.has_ended_process:
                world.forget_ended_process()
            if world.seconds() >= collected_at + HOUR:
                collected_at = world.seconds()
                gc.collect()
            if step == until or world.seconds() >= days * DAY:
                break
    except Violation as violation:
        found = str(violation)
    except Exception:  # noqa: BLE001 - reported like a violation
        found = f"the simulation: {traceback.format_exc(limit=-3)}"
    finally:
        gc.enable()
        gc.unfreeze()
    return Run(
        seed=seed,
        days=world.seconds() / DAY,
        step=world.step,
        looks=sum(checks.counts.values()),
        seconds=time.process_time() - began_at,
        digest=world.history.digest,
        counts=world.history.counts,
        recent=[*world.history.recent],
        reached=dict(COUNTS),
        judged=dict(checks.judged),
        found=found,
    )

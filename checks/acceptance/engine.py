"""buildah and podman with a storage of their own, and their containers.

They need only root: no daemon, service manager, network of their own or control groups.
"""

import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from checks.acceptance.check import Failed, listens, program, run, until
from tests.integration.programs import free_port

PODMAN = (
    "umount --recursive /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup"
    ' && exec podman "$@"'
)
"""A command that runs podman in a mount namespace with control groups for crun."""

HARDENED = (
    *("--read-only", "--read-only-tmpfs=false"),
    *("--cap-drop", "all", "--security-opt", "no-new-privileges"),
)
"""Options of a container without any privilege."""

NESTED = (
    *("--network", "host", "--cgroups", "disabled"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"),
    *("--health-interval", "disable"),  # It would need systemd's timers.
)
"""Options for a container on a machine that is itself a container."""

MAX_START = 120.0
"""Seconds until a container must listen."""


class Running(Struct, frozen=True):
    """A container that listens.

    Attributes:
        took: seconds from the engine's start to the first accepted connection.
    """

    engine: "Engine"
    name: str
    port: int
    took: float

    def healthy(self) -> None:
        """Raise Failed unless the image's own health check succeeds."""
        self.engine.podman("healthcheck", "run", self.name)

    def logs(self) -> str:
        return self.engine.podman("logs", self.name)

    def stop(self) -> None:
        """Stop the container. Raise Failed unless it exits with status 0."""
        self.engine.podman("stop", "--time", "20", self.name)
        wanted = "{{.State.ExitCode}}"
        status = self.engine.podman("inspect", "--format", wanted, self.name).strip()
        if status != "0" or "stopped" not in self.logs():
            raise Failed(f"it ended with status {status}\n{self.logs()}")


class Engine(Struct, frozen=True):
    """Both programs with one storage in a folder."""

    folder: Path

    @property
    def storage(self) -> tuple[str, ...]:
        """Return the first options of both programs."""
        stored, state = self.folder / "storage", self.folder / "state"
        driver = ("--storage-driver", "vfs")
        return ("--root", str(stored), "--runroot", str(state), *driver)

    def buildah(self, *command: str | Path) -> str:
        return run(program("buildah"), *self.storage, *command)

    def podman(self, *command: str | Path) -> str:
        return run(*self._podman, *command)

    @property
    def _podman(self) -> tuple[str, ...]:
        for needed in ("crun", "podman", "unshare"):
            program(needed)
        quiet = ("--log-level", "fatal", "--events-backend", "file")
        own = ("--cgroup-manager", "cgroupfs", "--runtime", "crun")
        there = ("unshare", "--mount", "sh", "-c", PODMAN, "podman")
        return (*there, *self.storage, *own, *quiet)

    def write_wrapper(self, name: str) -> Path:
        """Write a script that runs one of the programs with this storage."""
        script = self.folder / name
        command = ("exec", program(name), *self.storage)
        script.write_text(f'#!/bin/sh\n{" ".join(map(str, command))} "$@"\n')
        script.chmod(0o755)
        return script

    def write_docker(self, place: Path) -> None:
        """Write a program for the pages that runs podman with this storage."""
        anywhere = " ".join(NESTED)
        command = " ".join(shlex.quote(str(x)) for x in self._podman)
        place.write_text(
            f'#!/bin/sh\ncase $1 in run) shift; set -- run {anywhere} "$@" ;; esac\n'
            f'exec {command} "$@"\n'
        )
        place.chmod(0o755)

    def load(self, archive: Path, name: str) -> None:
        """Make an image of the archive of a root file system."""
        container = self.buildah("from", "scratch").strip()
        self.buildah("add", "--quiet", container, archive, "/")
        self.buildah("commit", "--quiet", "--timestamp", "0", container, name)
        self.buildah("rm", container)

    def save(self, image: str, folder: Path) -> None:
        """Write an image's manifest and blobs into a folder."""
        self.buildah("push", "--quiet", image, f"dir:{folder}")

    @contextmanager
    def started(
        self,
        image: str,
        *command: str,
        env: Mapping[str, str],
        mounts: Mapping[Path, str] | None = None,
    ) -> Iterator[Running]:
        """Run a container without privileges until the end of the block.

        Args:
            command: arguments of the entry point.
            mounts: the path in the container of each mounted file or folder.
        """
        port = free_port()
        name = f"api-exporter-{port}"
        settings = {"LISTEN_ADDRESS": f"127.0.0.1:{port}", **env}
        options = [*HARDENED, *NESTED, "--name", name]
        options += _environment(settings)
        for source, target in (mounts or {}).items():
            options += ["--volume", f"{source}:{target}:ro"]
        begin = time.monotonic()
        self.podman("run", "--detach", *options, image, *command)
        try:
            until(lambda: listens(port), lambda: self.podman("logs", name), MAX_START)
            yield Running(self, name, port, time.monotonic() - begin)
        finally:
            self.podman("rm", "--force", "--time", "5", name)

    def run_to_end(self, image: str, *command: str, env: Mapping[str, str]) -> str:
        """Return the output of a container that ends. Raise Failed if it fails."""
        options = [*HARDENED, *NESTED, "--rm", *_environment(env)]
        return self.podman("run", *options, image, *command)


def _environment(settings: Mapping[str, str]) -> list[str]:
    return [f"--env={name}={value}" for name, value in settings.items()]

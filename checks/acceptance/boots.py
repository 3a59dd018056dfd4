"""A booted system in a container, with systemd and a network of its own."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from checks.acceptance.check import MAX_WAIT, Failed, program, run
from checks.acceptance.roots import Root, clean

# The container's control groups, version 2 only, are below a group of our own.
_OWN_GROUPS = """
umount --recursive /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
"""
_BOOT = f"""{_OWN_GROUPS}
mkdir "/sys/fs/cgroup/$0"
echo $$ >"/sys/fs/cgroup/$0/cgroup.procs"
exec "$@"
"""
_CLEAN = f"""{_OWN_GROUPS}
find "/sys/fs/cgroup/$0" -depth -type d -exec rmdir {{}} +
"""

_CURL = ("curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "5")


class System(Struct, frozen=True):
    """A booted system.

    Attributes:
        leader: the process id of its first process on this machine.
    """

    leader: int

    def run(self, *command: str) -> str:
        """Run a program in the system. Return its output, or raise Failed."""
        return run("nsenter", f"--target={self.leader}", "--all", *clean(command))

    def get(self, where: str, path: str, group: str = "nogroup") -> str:
        """Return a response to a user of the system. `where` is a host and port, or the
        path of a socket.
        """
        as_nobody = ("setpriv", "--reuid=nobody", f"--regid={group}", "--clear-groups")
        is_socket = where.startswith("/")
        there = ("--unix-socket", where) if is_socket else ()
        url = f"http://{'localhost' if is_socket else where}{path}"
        return self.run(*as_nobody, *_CURL, *there, url)

    def wait_until(self, text: str, *command: str) -> str:
        """Run a program until it prints a text. Return its output."""
        return wait_until(lambda: self.run(*command), text, " ".join(command))

    def get_until(self, text: str, where: str, path: str) -> str:
        """Request a path until the response contains a text. Return the response."""
        return wait_until(lambda: self.get(where, path), text, f"{where} {path}")


@contextmanager
def booted(root: Root) -> Iterator[System]:
    """Boot the system, and power it off at the end of the block."""
    name = f"api-exporter-{os.getpid()}"
    options = ("--quiet", "--boot", "--register=no", "--keep-unit", "--private-network")
    command = (
        program("systemd-nspawn"),
        *options,
        "--console=pipe",
        f"--machine={name}",
        f"--directory={root.path}",
    )
    with (root.path.parent / "boot.log").open("ab") as log:
        container = subprocess.Popen(
            ["unshare", "--mount", "sh", "-e", "-c", _BOOT, name, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        system = System(_leader(container, Path(log.name)))
        system.wait_until("running", "systemctl", "is-system-running", "--wait")
        yield system
    finally:
        container.terminate()  # This powers the system off.
        try:
            container.wait(MAX_WAIT)
        except subprocess.TimeoutExpired:
            container.kill()
            container.wait()
        run("unshare", "--mount", "sh", "-e", "-c", _CLEAN, name)


def _leader(container: subprocess.Popen[bytes], log: Path) -> int:
    children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
    begin = time.monotonic()
    while time.monotonic() < begin + MAX_WAIT and container.poll() is None:
        with suppress(OSError):  # Processes may end meanwhile.
            for child in children.read_text().split():
                if Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                    return int(child)
        time.sleep(0.1)
    raise Failed(f"it does not boot: {log.read_text()}")


def wait_until(run_again: Callable[[], str], text: str, what: str) -> str:
    begin = time.monotonic()
    while True:
        try:
            output = run_again()
            if text in output:
                return output
        except Failed as error:
            output = str(error)
        if time.monotonic() > begin + MAX_WAIT:
            raise Failed(f"{what}: no {text!r} within {MAX_WAIT:g} s\n{output}")
        time.sleep(0.2)

"""The program on arm64: the locked packages' files for it, started by qemu-user.

Executable, package and image are built by the workflow `release`, on a native machine.
"""

import sys
from pathlib import Path

from checks.acceptance.check import ROOT, Failed, Missing, expect, run
from checks.acceptance.release import build
from checks.acceptance.roots import PYTHONS, Root, archive
from tests.integration.programs import free_port

_EMULATOR = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")

_FOREIGN = (
    "--variant=extract",  # Maintainer scripts would take an hour.
    "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
    "--architectures=arm64",
)

_RELEASE = 12

_GLIBC = (17, 28, 34)
"""Minor versions of glibc 2 in the names of wheels that run there."""

_START = """
export PYTHONPATH=/opt/locked:/opt/own LISTEN_ADDRESS=127.0.0.1:$0
uname -m
python3 -m api_exporter --version
python3 -m api_exporter --demo --once >/tmp/page
python3 -m api_exporter --demo >/tmp/log 2>&1 &
for _ in $(seq 60); do
    ! python3 -m api_exporter --health >/tmp/health || break
    sleep 1
done
kill $!
wait $!
"""


def arm64(folder: Path) -> str:
    """Check that the wheel and the locked packages run on arm64, and serve."""
    if not _EMULATOR.exists():
        raise Missing(
            "arm64 in binfmt_misc: apt-get install arch-test qemu-user-static"
        )
    root = Root(folder / "arm64")
    root.path.mkdir()
    tar = archive(_RELEASE, "arm64", "bash,coreutils,python3", _FOREIGN)
    run("tar", "--extract", "--file", tar, "--directory", root.path)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in _GLIBC]
    version = f"--python-version={PYTHONS[_RELEASE]}"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:")
    install = (*pip, version, *platforms)
    locked = ("--require-hashes", "--requirement", ROOT / "deploy/lock/run.txt")
    run(*install, "--target", root.path / "opt/locked", *locked)
    wheel = build(folder, "wheel")
    run(*install, "--target", root.path / "opt/own", "--no-deps", wheel)
    machine, said = root.run("bash", "-e", "-c", _START, f"{free_port()}").splitlines()
    expect("the machine", "aarch64", machine)
    if "netbird_api_peers{" not in root.read("tmp/page"):
        raise Failed("no peers")
    return f"{said}; served, and {root.read('tmp/health').strip()}"

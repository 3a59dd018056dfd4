"""The units, checked by systemd itself, and their limits with a large network."""

import re
import resource
import shutil
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, Exporter, new_folder, run
from tests.integration.programs import free_port, get, program, start, until

UNITS = DEPLOY / "systemd"

SERVICE = [
    "Type=notify",
    "WatchdogSec=30s",
    "Group=api-exporter",
    "RuntimeDirectory=api-exporter",
    "LogsDirectory=api-exporter",
    "StateDirectory=api-exporter",
    "ExecReload=/bin/sh -c 'kill -HUP $MAINPID'",
    "Environment=MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072",
    "Restart=always",
    "RestartSec=5s",
    "RestartPreventExitStatus=78",
    "LogRateLimitIntervalSec=30s",
    "LogRateLimitBurst=1000",
]

HARDENED = ["LimitCORE=0", "LimitAS=1G", "TasksMax=4096"]

EXPOSURE = 1.2

PEERS = 10_000


def lines(path: Path) -> list[str]:
    return [x for x in path.read_text().splitlines() if x and not x.startswith("#")]


def values(path: Path, name: str) -> list[str]:
    """Return a unit's values of one directive."""
    found = [line.partition("=") for line in lines(path)]
    return [value for key, _, value in found if key == name]


class UnitTests(SynchronousTestCase):
    def setUp(self) -> None:
        program("systemd-analyze")
        self.root = Path(self.mktemp()).absolute()
        self.units = self.root / "etc/systemd/system"
        shutil.copytree(UNITS, self.units)
        # The shipped units depend on those of the system.
        theirs = self.root / "usr/lib/systemd/system"
        shutil.copytree("/usr/lib/systemd/system", theirs, symlinks=True)
        for name in ("opt/api-exporter/bin/twistd", "bin/sh"):
            (self.root / name).parent.mkdir(parents=True)
            (self.root / name).touch(mode=0o755)

    def test_verify(self) -> None:
        """`systemd-analyze verify` has no finding, except in a wrong drop-in."""
        for unit in ("api-exporter.service", "api-exporter.socket"):
            self.assertEqual("", self.analyze("verify", unit))
        dropin = self.units / "api-exporter.service.d/hardened.conf"
        dropin.write_text(dropin.read_text() + "\nNoSuchThing=yes\n")
        self.assertIn("NoSuchThing", self.analyze("verify", "api-exporter.service"))

    def test_exposure(self) -> None:
        """The exposure is at most 1.2, with the token as a credential and without."""
        for _ in range(2):
            self.assertLessEqual(self.exposure(), EXPOSURE)
            (self.units / "api-exporter.service.d/token.conf").unlink(missing_ok=True)
        shutil.rmtree(self.units / "api-exporter.service.d")
        self.assertGreater(self.exposure(), EXPOSURE)

    def exposure(self) -> float:
        said = self.analyze("security", "--offline=true", "api-exporter.service")
        found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
        assert found is not None, said
        return float(found[1])

    def analyze(self, *arguments: str) -> str:
        return run("systemd-analyze", f"--root={self.root}", "--no-pager", *arguments)


class PromiseTests(SynchronousTestCase):
    def test_service(self) -> None:
        """Unit and drop-in set the promised directives, and none that breaks us."""
        self.assertLessEqual(set(SERVICE), set(lines(UNITS / "api-exporter.service")))
        hardened = lines(UNITS / "api-exporter.service.d/hardened.conf")
        self.assertLessEqual({*HARDENED}, set(hardened))
        for path in UNITS.rglob("*"):
            if path.is_file():
                names = {line.partition("=")[0] for line in lines(path)}
                broken = {"MemoryDenyWriteExecute", "ProcSubset"}
                self.assertEqual(set(), broken & names, path.name)


class SocketTests(SynchronousTestCase):
    def test_activation(self) -> None:
        """The first connection to systemd's socket starts the exporter."""
        activate = program("systemd-socket-activate")
        said = (UNITS / "api-exporter.socket").read_text()
        [address] = re.findall(r"LISTEN_ADDRESS=(\S+)", said)
        host = f"[::1]:{free_port('::1')}"
        # systemd gives this name, and Twisted needs one.
        command = [activate, "--fdname=api-exporter.socket", "-l", host]
        command += [
            "-E",
            f"LISTEN_ADDRESS={address}",
            program("api-exporter"),
            "--demo",
        ]
        waiting = start(self, command, new_folder(self))
        until(lambda: "Listening" in waiting.said(), "the socket")
        until(lambda: get(f"http://{host}/health")[0] == 200, "the exporter")
        until(lambda: f" is at {address} ({host})" in waiting.said(), "the line")


class LimitTests(SynchronousTestCase):
    def test_large_network(self) -> None:
        """10,000 peers are read and served within 1 GiB of address space."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        files = min(65536, most)  # the limit may be lower
        limits = f"ulimit -v 1048576 && ulimit -c 0 && ulimit -n {files}"
        shell = f'{limits} && exec "$0" --demo'
        exporter = Exporter(
            self,
            [program("sh"), "-c", shell, program("api-exporter")],
            MALLOC_ARENA_MAX="2",
            MALLOC_MMAP_THRESHOLD_="131072",
            DEMO_PEERS=str(PEERS),
        )
        for _ in range(3):
            page = exporter.page
            self.assertIn("\nnetbird_api_up 1", page)
            counted = re.findall(r"^netbird_api_peers\{.*\} (\d+)", page, re.MULTILINE)
            peers = sum(map(int, counted))
            self.assertGreater(peers, 0.9 * PEERS)
            self.assertEqual(peers, page.count("\nnetbird_api_peer_info{"))
            space = r"^process_virtual_memory_bytes (\S+)"
            [used] = re.findall(space, page, re.MULTILINE)
            self.assertLess(float(used), 2**30)
        limits = Path(f"/proc/{exporter.running.process.pid}/limits").read_text()
        self.assertRegex(limits, r"Max address space +1073741824 ")

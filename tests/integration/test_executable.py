"""The executable where there is nothing but libc: one file, and a directory."""

import os
import platform
import shutil
import stat
from pathlib import Path
from unittest import SkipTest

from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import ROOT, environment, program

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "other")
NAME = f"api-exporter-linux-{ARCH}"


DIRECTORY = ROOT / "build/directory/api-exporter"


class ExecutableTests(ExporterTestCase):
    def setUp(self) -> None:
        super().setUp()
        executable = ROOT / "dist" / NAME
        if not executable.exists():
            raise SkipTest(f"missing program: {NAME}, which `make executable` builds")
        if os.geteuid() != 0:
            raise SkipTest("missing privilege: to change the root directory")
        self.root = Path(self.mktemp()).resolve()
        (self.root / "tmp").mkdir(parents=True)  # it unpacks itself there
        (self.root / "dev").mkdir()
        os.mknod(self.root / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        shutil.copy(executable, self.root)
        for library in self.libc():
            directory = self.root / library.parent.relative_to("/")
            directory.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, directory)

    def libc(self) -> list[Path]:
        """The libraries of libc, and its loader where the executable looks for it."""
        libraries = self.output(program("ldd"), program("sh")).split()
        found = [Path(word) for word in libraries if word.startswith("/")]
        [directory] = {path.parent for path in found if path.name == "libc.so.6"}
        others = ("m", "dl", "pthread", "rt", "resolv", "util")
        return found + [
            path for name in others for path in directory.glob(f"lib{name}.so.*")
        ]

    def test_needs(self) -> None:
        """The only library it needs is libc."""
        libraries = self.output(program("ldd"), str(ROOT / "dist" / NAME)).split()
        names = {word for word in libraries if word.startswith("lib")}
        self.assertEqual({"libc.so.6"}, names)

    def test_licences(self) -> None:
        """Debian's licences of its libraries are included, except Python's."""
        inside = DIRECTORY / "_internal"
        there = {path.name for path in (inside / "licenses").glob("*")}
        for library in inside.glob("lib[!p]*.so*"):
            query = [program("dpkg-query"), "--search", f"*/lib/*/{library.name}"]
            ended = self.ended(query)
            known = {line.partition(":")[0] for line in ended.stdout.splitlines()}
            if known:
                self.assertTrue(known & there, library.name)

    def refused(self, prepared: str) -> str:
        """Return its error in a mount namespace of its own, after some preparation."""
        chrooted = f"exec chroot {self.root} /{NAME} --version"
        script = ["sh", "-ec", f"{prepared}\n{chrooted}"]
        ended = self.ended([program("unshare"), "--mount", *script])
        self.assertEqual((1, ""), (ended.returncode, ended.stdout), ended.stderr)
        return ended.stderr

    def test_missing(self) -> None:
        """Where a thing is missing that it needs, one line says which."""
        tmp, null = self.root / "tmp", self.root / "dev/null"
        mount = f"mount -t tmpfs none {tmp} -o"
        nowhere = "cannot unpack itself: neither TMPDIR nor /tmp names a directory"
        for prepared, expected in (
            (f"{mount} ro", f"{nowhere} it may write"),
            (f"{mount} noexec", " is mounted noexec: set TMPDIR to a directory"),
            (f"rmdir {tmp}", nowhere),
            (f"mkdir -p {tmp}; rm {null}", "there is no /dev/null"),
        ):
            said = self.refused(prepared)
            self.assertTrue(said.startswith("api-exporter: "), said)
            self.assertIn(expected, said)
            self.assertEqual(1, said.count("\n"), said)

    def test_another_directory(self) -> None:
        """TMPDIR names another directory to unpack into."""
        (self.root / "tmp").rename(self.root / "elsewhere")
        command = [program("chroot"), str(self.root), f"/{NAME}", "--version"]
        printed = self.output(*command, TMPDIR="/elsewhere")
        self.assertRegex(printed, r"^api-exporter \d+\.\d+\.\d+")

    def test_serves(self) -> None:
        """The executable serves the demo network, and SIGTERM ends it with status 0."""
        self.serves(f"/{NAME}")

    def test_directory(self) -> None:
        """So does the directory, which needs nowhere to unpack."""
        shutil.copytree(DIRECTORY, self.root / "program")
        (self.root / "tmp").rmdir()
        self.serves("/program/api-exporter")

    def test_endpoints(self) -> None:
        """Both know Twisted's endpoints, and end with one line if they fail."""
        for name in (ROOT / "dist" / NAME, DIRECTORY / "api-exporter"):
            for address, status, expected in (
                ("tcp6:none", 78, "invalid literal for int()"),
                ("unix:/none/socket", 1, "cannot listen on unix:/none/socket: No such"),
            ):
                environ = environment(LISTEN_ADDRESS=address)
                ended = self.ended([str(name), "--demo"], environ)
                self.assertEqual(status, ended.returncode, ended.stderr)
                [line] = ended.stderr.splitlines()
                self.assertIn(expected, line)

    def test_help(self) -> None:
        """Both say what they can do in the words of an installation with pip."""
        programs = (
            program("api-exporter"),
            str(ROOT / "dist" / NAME),
            str(DIRECTORY / "api-exporter"),
        )
        printed = {self.output(name, "--help") for name in programs}
        self.assertEqual(1, len(printed), printed)

    def test_health(self) -> None:
        """The executable has the TLS that --health needs."""
        health = [str(DIRECTORY / "api-exporter"), "--health", "https://127.0.0.1:1"]
        self.assertIn("refused", self.ended(health).stdout)

    def test_plugins(self) -> None:
        """Twisted has nothing to write into the directory, which its user may not."""
        plugins = DIRECTORY / "_internal/twisted/plugins"
        listed = (plugins / "dropin.cache").stat().st_mtime
        for module in plugins.glob("*.py"):
            self.assertLess(module.stat().st_mtime, listed)

    def serves(self, name: str) -> None:
        chrooted = [program("chroot"), str(self.root), name, "--demo"]
        self.assert_stops(self.started(chrooted, sign="netbird_api_peer_info"))

    def output(self, *command: str, **environ: str) -> str:
        """Return the output of a program that succeeds."""
        ended = self.ended(command, environment(**environ))
        self.assertEqual(0, ended.returncode, ended)
        return ended.stdout

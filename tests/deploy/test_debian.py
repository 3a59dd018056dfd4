"""The Debian package, made of a program that only looks like one."""

import os
import re
import shutil
from itertools import pairwise
from pathlib import Path
from stat import S_ISREG

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from api_exporter.cli import CommandOptions
from tests.deploy.addresses import addresses
from tests.deploy.programs import DEPLOY, new_folder, run
from tests.deploy.test_systemd import UNITS, lines
from tests.integration.programs import program
from tools.manual import manual

DEBIAN = DEPLOY / "debian"

MODES = {
    "./etc/api-exporter/": "drwxr-x---",
    "./usr/lib/api-exporter/api-exporter": "-rwxr-xr-x",
    "./usr/lib/api-exporter/_internal/libz.so.1": "-rw-r--r--",
    "./usr/lib/systemd/system/api-exporter.service": "-rw-r--r--",
    "./usr/lib/systemd/system/api-exporter.service.d/hardened.conf": "-rw-r--r--",
    "./usr/lib/systemd/system/api-exporter.socket": "-rw-r--r--",
    "./usr/lib/sysusers.d/api-exporter.conf": "-rw-r--r--",
    "./usr/share/api-exporter/config": "-rw-r--r--",
    "./usr/share/api-exporter/prometheus/alertmanager.yml": "-rw-r--r--",
    "./usr/share/api-exporter/prometheus/prometheus.yml": "-rw-r--r--",
    "./usr/share/api-exporter/token.conf": "-rw-r--r--",
    "./usr/share/api-exporter/unix-socket.conf": "-rw-r--r--",
    "./usr/share/doc/api-exporter/examples/api-exporter.sh": "-rwxr-xr-x",
    "./usr/share/doc/api-exporter/examples/logrotate": "-rw-r--r--",
    "./usr/share/doc/api-exporter/examples/monitoring/stun.py": "-rw-r--r--",
    "./usr/share/doc/api-exporter/runbooks.html": "lrwxrwxrwx",
    "./usr/share/man/man1/api-exporter.1.gz": "-rw-r--r--",
}


class PackageTests(SynchronousTestCase):
    def setUp(self) -> None:
        program("dpkg-deb")
        self.program = new_folder(self)
        doc = self.program / "_internal/api_exporter/doc"
        doc.mkdir(parents=True)
        (doc / "runbooks.html").write_text("Runbooks")
        (self.program / "api-exporter").write_text("#!/bin/sh\n")
        (self.program / "_internal/libz.so.1").touch(mode=0o755)
        (self.program / "api-exporter").chmod(0o755)

    def built(self, version: str = "1.2.3") -> Path:
        """Build the package of a version."""
        env = {"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": "1", "COMPRESSION": "none"}
        out = Path(self.mktemp()).absolute()
        said = run(DEBIAN / "build.sh", self.program, version, out, env=env)
        return Path(said.strip())

    def extracted(self) -> Path:
        """Return a folder with the files of a package."""
        tree = new_folder(self)
        run("dpkg-deb", "--extract", self.built(), tree)
        return tree

    def field(self, package: Path, name: str) -> str:
        return run("dpkg-deb", "--field", package, name).strip()

    def test_files(self) -> None:
        """All files are root's; the template lacks both required values."""
        required = ["UPSTREAM_API_URL=", "UPSTREAM_API_TOKEN="]
        self.assertEqual(required, lines(DEBIAN / "config"))
        found = {}
        for line in run("dpkg-deb", "--contents", self.built()).splitlines():
            mode, owner, _, _, _, name, *_ = line.split()
            self.assertEqual("root/root", owner, name)
            found[name] = mode
        self.assertEqual(MODES, {name: found.get(name) for name in MODES})
        self.assertNotIn("./etc/api-exporter/config", found)

    def test_same(self) -> None:
        """The same program makes the same bytes. Their size is that of the files."""
        package = self.built()
        self.assertEqual(package.read_bytes(), self.built().read_bytes())
        found = [x.lstat() for x in self.extracted().rglob("*")]
        size = sum(-(-x.st_size // 1024) for x in found if S_ISREG(x.st_mode))
        self.assertEqual(str(size), self.field(package, "Installed-Size"))

    def test_versions(self) -> None:
        """A pre-release is older than its release, for dpkg, too."""
        ordered = ("1.2.2", "1.2.3.dev0", "1.2.3rc1", "1.2.3rc2", "1.2.3", "1.2.10")
        versions = [self.field(self.built(x), "Version") for x in ordered]
        self.assertEqual(
            ["1.2.2-1", "1.2.3~dev0-1", "1.2.3~rc1-1", "1.2.3~rc2-1"], versions[:4]
        )
        for older, newer in pairwise(versions):
            run("dpkg", "--compare-versions", older, "lt", newer)

    def test_libc(self) -> None:
        """The package depends on the libc with the symbols of its binaries."""
        depends = self.field(self.built(), "Depends")
        self.assertTrue(depends.startswith("libc6, "), depends)
        (self.program / "api-exporter").write_bytes(Path("/bin/ls").read_bytes())
        depends = self.field(self.built(), "Depends")
        self.assertRegex(depends, r"^libc6 \(>= 2\.\d+\), ")

    def test_unit(self) -> None:
        """The unit is that of `deploy/systemd`, except for paths and Python."""
        tree = self.extracted()
        units = tree / "usr/lib/systemd/system"
        packaged = lines(units / "api-exporter.service")
        own = {"ExecStart=/usr/bin/api-exporter --config /etc/api-exporter/config"}
        [documentation] = (x for x in packaged if x.startswith("Documentation="))
        self.assertRegex(documentation, r"=man:\S+ file:/usr/share/doc/\S+$")
        differs = set(packaged) ^ set(lines(UNITS / "api-exporter.service"))
        kept = {x for x in differs if not x.startswith(("ExecStart", "Documentation="))}
        started = {x for x in packaged if x.startswith("ExecStart")}
        self.assertEqual((own, set()), (started, kept))
        target = tree / "usr/bin/api-exporter"
        self.assertEqual("../lib/api-exporter/api-exporter", str(target.readlink()))


class ConfigureTests(SynchronousTestCase):
    def test_settings(self) -> None:
        """The group owns the settings, and those that follow their removal."""
        program("systemd-sysusers")
        if os.geteuid():
            raise SkipTest("missing privilege: root")
        root = new_folder(self)
        for source, name in (
            (DEBIAN / "config", "usr/share/api-exporter/config"),
            (UNITS / "sysusers.conf", "usr/lib/sysusers.d/api-exporter.conf"),
        ):
            (root / name).parent.mkdir(parents=True)
            shutil.copy(source, root / name)
        env = {**os.environ, "DPKG_ROOT": str(root)}
        settings = root / "etc/api-exporter"
        for before in ("", "1.2.3-1"):
            shutil.rmtree(settings, ignore_errors=True)
            settings.mkdir(mode=0o750, parents=True)
            run(DEBIAN / "postinst", "configure", before, env=env)
            config = settings / "config"
            self.assertEqual(0o640, config.stat().st_mode & 0o777)
            group = re.findall(
                r"^api-exporter:[^:]*:(\d+):",
                (root / "etc/group").read_text(),
                re.MULTILINE,
            )
            owners = [str(path.stat().st_gid) for path in (settings, config)]
            self.assertEqual(group * 2, owners)
        settings.chmod(0o750)
        os.chown(settings, 0, 0)  # as an administrator may do
        run(DEBIAN / "postinst", "configure", "1.2.3-1", env=env)
        self.assertEqual(0, settings.stat().st_gid)


class ManualTests(SynchronousTestCase):
    def test_options(self) -> None:
        """The manual page has every option once, and the required settings."""
        options = [name for name, *_ in CommandOptions.optFlags]
        options += [name for name, *_ in CommandOptions.optParameters]
        page = manual().replace("\\-", "-")
        told = re.findall(r"^\.TP\n.*\\fB--([a-z-]+)\\fR", page, re.MULTILINE)
        self.assertEqual(sorted([*options, "help", "version"]), sorted(told))
        named = re.findall(r"^\.BR? ([A-Z_]{9,})", page, re.MULTILINE)
        self.assertEqual(["UPSTREAM_API_URL", "UPSTREAM_API_TOKEN"], named)
        documents = {x.name for x in (DEPLOY.parent / "api_exporter/doc").iterdir()}
        self.assertLess({*re.findall(r"[a-z]+\.(?:md|html)", page)}, documents)
        self.assertNotIn(addresses()["FORGE"], page)

    def test_roff(self) -> None:
        """No line starts an unintended roff request, and no Markdown remains."""
        for line in manual().splitlines():
            if line.startswith("."):
                requests = (
                    r'\\"|(TH|SH|SS|TP|PP|B|BR|I|IR|R[SE]|U[RE]|br|nf|fi|nh|ad)\b'
                )
                self.assertRegex(line, rf"^\.({requests})")
            else:
                self.assertNotRegex(line, r"^'|`|\]\(")

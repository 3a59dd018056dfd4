"""No TCP port at all: readers of one group, and a Prometheus."""

import grp
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import blocks, new_folder, run
from tests.deploy.prometheus import Prometheus, needs
from tests.integration.programs import ROOT, becomes, environment, program, start, until

SECTION = "No TCP port at all"
"""The section of `docs/security.md`."""

SOCKET = "/run/api-exporter/http.sock"

PLACE = "/var/lib/prometheus"

READERS, OTHERS = 60001, 60002
"""Groups without a name."""


def shell() -> list[str]:
    """Return the commands of the section."""
    return blocks("security.md", "sh", SECTION)


class UnixSocketTestCase(SynchronousTestCase):
    """An exporter of three simulated accounts with the page's settings."""

    def setUp(self) -> None:
        # Other users must reach it.
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)
        self.place.chmod(0o755)
        self.socket = self.place / "http.sock"

    def started(self, before: Sequence[str] = ()) -> None:
        [address] = set(re.findall(r"LISTEN_ADDRESS=(\S+)", shell()[0]))
        address = address.replace(SOCKET, str(self.socket))
        directory = new_folder(self)
        settings = environment(LISTEN_ADDRESS=address, DEMO_ACCOUNTS="3")
        command = [*before, sys.executable, "-m", "api_exporter", "--demo"]
        start(self, command, directory, {**settings, "PYTHONPATH": str(ROOT)})
        until(lambda: self.asked("/health") == 0, "the socket")

    def asked(self, path: str, before: Sequence[str] = ()) -> int:
        """Return the status of a page that curl requests."""
        command = [*before, "curl", "-sSf", "--unix-socket", f"{self.socket}"]
        done = subprocess.run(
            [*command, f"http://localhost{path}"], check=False, capture_output=True
        )
        return done.returncode


class ReaderTests(UnixSocketTestCase):
    def test_group(self) -> None:
        """Members of the socket's group read it, another user does not."""
        if os.geteuid():
            raise SkipTest("missing privilege: root")
        setpriv = program("setpriv")
        program("curl")
        self.started([setpriv, f"--regid={READERS}", "--clear-groups"])
        nobody = pwd.getpwnam("nobody").pw_uid
        as_nobody = [setpriv, f"--reuid={nobody}", "--clear-groups"]
        self.assertEqual(0, self.asked("/metrics", [*as_nobody, f"--regid={READERS}"]))
        couldnt_connect = 7
        self.assertEqual(
            couldnt_connect, self.asked("/metrics", [*as_nobody, f"--regid={OTHERS}"])
        )


class PrometheusTests(UnixSocketTestCase):
    def test_scraped(self) -> None:
        """Prometheus reads the process and each account over the socket alone."""
        needs("prometheus", "3.15.0")
        program("curl")
        self.started()
        here = shell()[1].replace(SOCKET, str(self.socket))
        run("sh", "-ec", here.replace(PLACE, str(self.place)))
        listed = json.loads((self.place / "netbird-accounts.json").read_text())
        accounts = {target["labels"]["account"] for target in listed}
        self.assertEqual(3, len(accounts))
        [jobs] = blocks("security.md", "yaml", SECTION)
        text = f"global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n{jobs}"
        text = text.replace(SOCKET, str(self.socket)).replace(PLACE, str(self.place))
        prometheus = Prometheus(self, text)
        becomes(
            {(account, "netbird") for account in ("", *accounts)},
            lambda: {
                (s["metric"].get("account", ""), s["metric"]["instance"])
                for s in prometheus.samples("up == 1")
            },
        )
        until(lambda: len(prometheus.samples("netbird_api_up")) == 3, "the accounts")


class DropInTests(SynchronousTestCase):
    def test_group(self) -> None:
        """Debian's Prometheus has the group that the drop-in names."""
        program("prometheus")
        dropin = ROOT / "deploy/systemd/api-exporter.service.d/unix-socket.conf"
        [group] = re.findall(r"^Group=(\w+)", dropin.read_text(), re.MULTILINE)
        try:
            grp.getgrnam(group)
        except KeyError:
            raise SkipTest(f"no group {group}: another Prometheus") from None
        self.assertEqual(group, pwd.getpwnam("prometheus").pw_name)

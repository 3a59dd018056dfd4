"""The files of the settings, read as the user of the service."""

import os
import shutil
import tempfile
from errno import EINVAL
from pathlib import Path
from unittest import skipUnless

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking import service_user
from api_exporter.checking.service_user import user_lines
from api_exporter.settings.environment import read_settings

NOBODY = "nobody"


class ServiceUserTests(SynchronousTestCase):
    def setUp(self) -> None:
        folder = Path(tempfile.mkdtemp())  # that of trial is below a home folder
        self.addCleanup(shutil.rmtree, folder)
        folder.chmod(0o755)
        self.token = folder / "token"
        self.token.write_text("nbp_x")
        self.patch(service_user, "SERVICE_USER", NOBODY)

    def load(self) -> None:
        environ = {"UPSTREAM_API_URL": "http://api.example"}
        read_settings({**environ, "UPSTREAM_API_TOKEN_FILE": str(self.token)})

    @skipUnless(os.geteuid() == 0, "only root can act as another user")
    def test_root(self) -> None:
        """Root reads the files as the user of the service, then is root again."""
        groups = os.getgroups()
        self.token.chmod(0o644)
        can_read = [f"{NOBODY}, the user of the service, can read all files"]
        self.assertEqual(can_read, user_lines(self.load))
        self.token.chmod(0o600)
        problem, credentials = user_lines(self.load)
        self.assertTrue(problem.startswith(f"for {NOBODY}: UPSTREAM_API_TOKEN_FILE: "))
        self.assertTrue(problem.endswith("(Permission denied)"), problem)
        self.assertIn("credentials of systemd", credentials)
        self.assertEqual((0, groups), (os.geteuid(), os.getgroups()))
        self.load()

    def test_unknown(self) -> None:
        """Where the user does not exist, a line says that nothing was tested."""
        self.patch(os, "geteuid", lambda: 0)
        self.patch(service_user, "SERVICE_USER", "no-such-user")
        [line] = user_lines(self.load)
        self.assertIn("no-such-user, the user of the service, does not exist", line)

    def test_container(self) -> None:
        """In a container that lacks the user's number, nothing can be tested."""

        def refuse(_: object) -> None:
            raise OSError(EINVAL, "Invalid argument")

        self.patch(os, "geteuid", lambda: 0)
        self.patch(os, "setgroups", refuse)
        [line] = user_lines(self.load)
        self.assertIn(f"{NOBODY}, the user of the service, cannot be tested", line)

    def test_other(self) -> None:
        """Another user than root tests only its own permissions."""
        self.patch(os, "geteuid", lambda: 1)
        self.assertEqual([], user_lines(self.load))

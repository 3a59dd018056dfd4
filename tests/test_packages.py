"""The packages that a release contains."""

from configparser import ConfigParser

from twisted.trial.unittest import SynchronousTestCase

from tools.documents import ROOT


class PackagesTests(SynchronousTestCase):
    def test_every_package(self) -> None:
        """Each folder of modules is named in `setup.cfg`; a wheel would lack others."""
        setup = ConfigParser()
        setup.read(ROOT / "setup.cfg")
        files = (ROOT / "api_exporter").rglob("__init__.py")
        folders = {".".join(x.parent.relative_to(ROOT).parts) for x in files}
        named = set(setup["options"]["packages"].split())
        self.assertEqual(folders, named - {"twisted.plugins"})

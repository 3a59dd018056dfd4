"""Compression: both libraries write valid deflate."""

import importlib.util
import sys
import zlib
from types import ModuleType

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from api_exporter.exposition import deflate


def without_isal() -> ModuleType:
    """Return the module as it is without the extra `fast`."""
    assert deflate.__spec__ is not None
    assert deflate.__spec__.loader is not None
    module = importlib.util.module_from_spec(deflate.__spec__)
    there = {name: sys.modules.get(name) for name in ("isal", "isal.isal_zlib")}
    sys.modules.update(dict.fromkeys(there))  # type: ignore[arg-type]  # None: not installed
    try:
        deflate.__spec__.loader.exec_module(module)
    finally:
        sys.modules.update({n: m for n, m in there.items() if m is not None})
    return module


PLAIN = without_isal()


class DeflateTests(SynchronousTestCase):
    def test_both(self) -> None:
        """The library is igzip if it is installed, otherwise zlib."""
        if importlib.util.find_spec("isal") is None:
            raise SkipTest("isal, of the extra `fast`, is not installed")
        self.assertEqual(
            ["isal.isal_zlib", "zlib"],
            [module._library.__name__ for module in (deflate, PLAIN)],
        )

    @settings(deadline=None)
    @given(texts=st.lists(st.tuples(st.binary(), st.booleans())), end=st.binary())
    def test_stream(self, texts: list[tuple[bytes, bool]], end: bytes) -> None:
        """Texts compressed by either library, in a row, are one complete stream."""
        stream = b"".join(
            (PLAIN if plain else deflate).deflated(text) for text, plain in texts
        )
        for module in (PLAIN, deflate):
            whole = zlib.decompressobj(-zlib.MAX_WBITS)
            found = whole.decompress(stream + module.deflated(end, last=True))
            self.assertEqual(b"".join(text for text, _ in texts) + end, found)
            self.assertTrue(whole.eof)

"""TLS contexts are made once for a host and a set of certificates."""

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.upstream.tls_contexts import ContextCache, trusted


class KeptContextsTests(SynchronousTestCase):
    def test_kept(self) -> None:
        """A host's connections share one context; another host has its own."""
        kept = ContextCache(state=lambda: 1)
        first = kept.creatorForNetloc(b"a.example", 443)
        self.assertIs(first, kept.creatorForNetloc(b"a.example", 8443))
        self.assertIsNot(first, kept.creatorForNetloc(b"b.example", 443))

    def test_changed(self) -> None:
        """After the authorities have changed contexts are made afresh, once."""
        state = 1
        kept = ContextCache(state=lambda: state)
        first = kept.creatorForNetloc(b"a.example", 443)
        state = 2
        second = kept.creatorForNetloc(b"a.example", 443)
        self.assertIsNot(first, second)
        self.assertIs(second, kept.creatorForNetloc(b"a.example", 443))


class TrustedTests(SynchronousTestCase):
    def test_file(self) -> None:
        """A bundle that the environment names is noticed when it is replaced."""
        bundle = Path(self.mktemp())
        self.patch(os, "environ", {**os.environ, "SSL_CERT_FILE": str(bundle)})
        states = [trusted()]
        bundle.write_text("one")
        states.append(trusted())
        bundle.write_text("other")
        states.append(trusted())
        self.assertEqual(3, len(set(states)))
        self.assertEqual(states[-1], trusted())

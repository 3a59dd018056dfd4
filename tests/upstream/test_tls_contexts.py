"""TLS contexts are made once for a host and a set of certificates."""

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.upstream.tls_contexts import authorities_state


class TrustedTests(SynchronousTestCase):
    def test_file(self) -> None:
        """A replaced certificate bundle of SSL_CERT_FILE changes the state."""
        bundle = Path(self.mktemp())
        self.patch(os, "environ", {**os.environ, "SSL_CERT_FILE": str(bundle)})
        states = [authorities_state()]
        bundle.write_text("one")
        states.append(authorities_state())
        bundle.write_text("other")
        states.append(authorities_state())
        self.assertEqual(3, len(set(states)))
        self.assertEqual(states[-1], authorities_state())

"""What records are made of."""

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.records import Peer


class PeerTests(SynchronousTestCase):
    def test_alike(self) -> None:
        """What two machines have in common is in memory once."""
        bodies = [b'{"id": "%d", "os": "Debian 13"}' % number for number in range(2)]
        one, other = (msgspec.json.decode(body, type=Peer) for body in bodies)
        self.assertEqual("Debian 13", one.os)
        self.assertIs(one.os, other.os)

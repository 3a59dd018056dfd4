"""Findings follow the refreshes of an account's resources, and nothing else."""

from twisted.trial.unittest import SynchronousTestCase

from tests.refresh.test_refresher import DOWN, Bench

OFFLINE = b'[{"id":"p1","name":"web","connected":false}]'
SERVERS = b'[{"id":"g","name":"servers","peers_count":1,"peers":[{"id":"p1"}]}]'


def watched(peers: bytes) -> Bench:
    """Return a network whose servers are important."""
    return Bench(important_groups=("servers",), peers=peers, groups=SERVERS)


def alerts(bench: Bench) -> list[str]:
    return [finding.alert for finding in bench.findings.found.findings]


class RoundsTests(SynchronousTestCase):
    def test_failing(self) -> None:
        """While the peers fail, that is the finding. After recovery, it ends."""
        bench = watched(OFFLINE).start()
        bench.replies["peers"] = DOWN
        bench.advance(31)
        self.assertEqual(["ApiExporterUpstreamFailing"], alerts(bench))
        self.assertIn("are old", bench.findings.found.findings[0].message)
        bench.advance(300)
        [finding] = bench.findings.found.findings
        self.assertIn("are missing", finding.message)
        self.assertIn("peers", bench.findings.found.unknown)
        bench.replies["peers"] = OFFLINE
        bench.advance(61)
        self.assertEqual(["NetBirdImportantPeerOffline"], alerts(bench))

    def test_between(self) -> None:
        """Between two refreshes, nothing is computed."""
        bench = watched(OFFLINE).start()
        before = bench.findings.found
        bench.advance(20)
        self.assertIs(before, bench.findings.found)
        self.assertEqual(
            1.0,
            bench.telemetry.registry.get_sample_value(
                "api_exporter_attention", {"severity": "warning"}
            ),
        )

    def test_stop(self) -> None:
        """A stop in the middle of an update leaves no delayed call."""
        bench = watched(OFFLINE)
        bench.startService()
        for _ in range(12):
            bench.clock.advance(0)
        self.successResultOf(bench.stopService())
        bench.advance(1)
        self.assertEqual([], bench.clock.getDelayedCalls())

"""The hardened unit's limits, with a large network."""

import re
import resource
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import Exporter
from tests.integration.programs import program

PEERS = 10_000


class LimitTests(SynchronousTestCase):
    def test_large_network(self) -> None:
        """10,000 peers are read and served within 1 GiB of address space."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        files = min(65536, most)  # the limit may be lower
        limits = f"ulimit -v 1048576 && ulimit -c 0 && ulimit -n {files}"
        shell = f'{limits} && exec "$0" --demo'
        exporter = Exporter(
            self,
            [program("sh"), "-c", shell, program("api-exporter")],
            MALLOC_ARENA_MAX="2",
            MALLOC_MMAP_THRESHOLD_="131072",
            DEMO_PEERS=str(PEERS),
        )
        for _ in range(3):
            self.assertLarge(exporter.page)
        limits = Path(f"/proc/{exporter.running.process.pid}/limits").read_text()
        self.assertRegex(limits, r"Max address space +1073741824 ")

    def assertLarge(self, page: str) -> None:  # noqa: N802 - as the others
        self.assertIn("\nnetbird_api_up 1", page)
        counted = re.findall(r"^netbird_api_peers\{.*\} (\d+)", page, re.MULTILINE)
        peers = sum(map(int, counted))
        self.assertGreater(peers, 0.9 * PEERS)
        self.assertEqual(peers, page.count("\nnetbird_api_peer_info{"))
        [space] = re.findall(r"^process_virtual_memory_bytes (\S+)", page, re.MULTILINE)
        self.assertLess(float(space), 2**30)

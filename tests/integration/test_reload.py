"""SIGHUP: files that are pipes, a disk that hangs, an end amid a reload."""

import os
import signal

from tests.integration.exporter import GOOD, ExporterTestCase, Upstream
from tests.integration.programs import Running, environment, get, until


class ReloadTests(ExporterTestCase):
    def setUp(self) -> None:
        super().setUp()
        upstream = Upstream(self, GOOD)
        self.config = self.directory / "config"
        self.text = (
            f"UPSTREAM_API_URL={upstream.url}\nUPSTREAM_API_TOKEN={GOOD}\n"
            f"LISTEN_ADDRESS=127.0.0.1:{self.port}\n"
        )
        self.config.write_text(self.text)
        self.config.chmod(0o600)

    def reload(self, running: Running, *words: str) -> None:
        """Send SIGHUP; wait for a line with these words."""
        running.process.send_signal(signal.SIGHUP)

        def is_written() -> bool:
            lines = running.said().splitlines()
            return any(all(word in line for word in words) for line in lines)

        until(is_written, " … ".join(words))
        self.assertEqual(200, get(self.url("/health"))[0])

    def test_pipe(self) -> None:
        """A file that has become a pipe changes nothing, and delays nothing."""
        running = self.started([*self.exporter, "--config", "config"], environment())
        self.config.unlink()
        os.mkfifo(self.config)
        words = "config: the file is not a regular file", "previous settings stay"
        self.reload(running, *words)
        self.config.unlink()
        self.config.write_text(self.text + "PEER_DETAIL=none\nLOG_LEVEL=debug\n")
        self.reload(running, "reloaded settings: changed LOG_LEVEL, PEER_DETAIL")
        until(lambda: " debug requested " in running.said(), "a line for debugging")
        self.assert_stops(running)

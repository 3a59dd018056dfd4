"""The simulation's settings, beside those that are meant for the real thing."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo import server
from api_exporter.settings.environment import read


class EnvironTests(SynchronousTestCase):
    def test_events(self) -> None:
        """Its audit events are no real ones, and are not written among these."""
        listening = server.bind()
        self.addCleanup(listening.close)
        for output in ("/var/log/e.jsonl", "-"):
            wanted = {"EVENTS_FILE": output, "EVENTS_CURSOR_FILE": "/var/lib/e"}
            for others in ({}, {"DEMO_ACCOUNTS": "3"}):
                settings = read(wanted | others | server.environ(listening))
                for account in server.simulated(settings).accounts.values():
                    self.assertIsNone(account.events_file)

"""The settings of the simulation."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo import server
from api_exporter.settings.environment import read_settings


class EnvironTests(SynchronousTestCase):
    def test_events(self) -> None:
        """Simulated audit events are not written to the configured file."""
        listening = server.bind()
        self.addCleanup(listening.close)
        for output in ("/var/log/e.jsonl", "-"):
            wanted = {"EVENTS_FILE": output, "EVENTS_CURSOR_FILE": "/var/lib/e"}
            for others in ({}, {"DEMO_ACCOUNTS": "3"}):
                settings = read_settings(
                    wanted | others | server.demo_environment(listening)
                )
                for account in server.with_demo_accounts(settings).accounts.values():
                    self.assertIsNone(account.events_file)

"""Weekly changes that are reverted."""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from simulation.company.incidents import OPEN, SETTINGS_LOST
from simulation.company.network import SimulatedNetwork
from tests.company.test_network import NOW, read

HOUR = 3600


class IncidentsTests(SynchronousTestCase):
    network = SimulatedNetwork(10)

    def week(self, path: str, name: str, key: str) -> dict[int, Any]:
        """Return a field of the record with a name, for each hour of a week."""
        found = {}
        for hour in range(7 * 24):
            records = read(self.network, path, NOW + hour * HOUR)
            [record] = (one for one in records if one.get("name", "") == name)
            found[hour] = record[key]
        return found

    def test_settings_lost(self) -> None:
        """The account's settings are off for an hour."""
        for hour, settings in self.week("/api/accounts", "", "settings").items():
            lost = SETTINGS_LOST.is_active(NOW + hour * HOUR)
            self.assertEqual(not lost, settings["lazy_connection_enabled"])

    def test_open(self) -> None:
        """The wiki has no authentication for three hours."""
        ways = self.week("/api/reverse-proxies/services", "wiki", "auth")
        for hour, way in ways.items():
            self.assertEqual(OPEN.is_active(NOW + hour * HOUR), way == {})

"""What somebody does once a week, and takes back."""

from twisted.trial.unittest import SynchronousTestCase

from simulation.company.incidents import OPEN, SETTINGS_LOST
from simulation.company.network import SimulatedNetwork
from tests.company.test_network import NOW, read

HOUR = 3600


class IncidentsTests(SynchronousTestCase):
    network = SimulatedNetwork(10)

    def week(self, path: str, name: str, key: str) -> dict[int, object]:
        """A key of the record of a name, or of the first, by the hour."""
        found: dict[int, object] = {}
        for hour in range(7 * 24):
            records = read(self.network, path, NOW + hour * HOUR)
            [record] = (one for one in records if one.get("name", "") == name)
            found[hour] = record[key]
        return found

    def test_settings_lost(self) -> None:
        """For an hour the account's settings are off."""
        for hour, settings in self.week("/api/accounts", "", "settings").items():
            assert isinstance(settings, dict)
            lost = SETTINGS_LOST.lasts(NOW + hour * HOUR)
            self.assertEqual(not lost, settings["lazy_connection_enabled"])

    def test_open(self) -> None:
        """For three hours the wiki asks nobody who he is."""
        ways = self.week("/api/reverse-proxies/services", "wiki", "auth")
        for hour, way in ways.items():
            self.assertEqual(OPEN.lasts(NOW + hour * HOUR), way == {})

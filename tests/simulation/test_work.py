"""The work of administrators in the simulation."""

from copy import deepcopy
from random import Random

from twisted.trial.unittest import SynchronousTestCase

from simulation.work import Administrator
from tests.administrator import WORLDS, World


class WorkTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world: World = deepcopy(WORLDS[0])
        self.world["agent_providers"] = [{"id": "provider"}]
        self.administrator = Administrator(lambda: self.world, lambda: 0.0)

    def test_changes(self) -> None:
        """Each step changes the lists that it names, and no other one."""
        kinds = set()
        for number in range(150):
            job = self.administrator.begin(Random(number))
            kinds.add(job.kind)
            before = deepcopy(self.world)
            for names in job.steps:
                for name, records in self.world.items():
                    if name not in names:
                        self.assertEqual(before[name], records, (job.kind, name))
                before = deepcopy(self.world)
        self.assertEqual(10, len(kinds))

    def test_deleted(self) -> None:
        """A team that was deleted leaves nothing."""
        for number in range(150):
            for _ in self.administrator.begin(Random(number)).steps:
                pass
        ids = {r["id"] for records in self.world.values() for r in records}
        teams = {id_.rpartition("team")[2] for id_ in ids if "team" in id_}
        self.assertEqual(
            {t.removeprefix("team") for t in self.administrator.teams}, teams
        )

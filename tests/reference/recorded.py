"""Bodies of real servers beside the reference, for `docs/develop/correctness.md`."""

from dataclasses import replace

from api_exporter.subjects.table import RESOURCE_BY_NAME, SUBJECTS
from tests.bodies import RECORDED_TIME, by_resource, recorded
from tests.reference.comparison import JOINED, PERSONAL, differences
from tests.reference.program import program
from tools.correctness import record_result

SERVERS = ("recorded", "recorded_agents", "stock")


def ledger() -> dict[str, dict[str, str]]:
    """Return for each family the file in which it is not 0, and the paths that it is
    made of. Without such a file there is the reason.
    """
    settings = replace(PERSONAL, asked=RECORDED_TIME, now=RECORDED_TIME)
    shown: dict[str, str] = {}
    absent = dict[str, str]()
    for server in SERVERS:
        for (name, _), value in program(
            by_resource(recorded(server)), settings
        ).items():
            absent[name] = "0 on each recorded server"
            if value:
                shown.setdefault(name, server)
    return {
        row.metric.name: {
            "file": shown.get(row.metric.name, ""),
            "paths": " ".join(RESOURCE_BY_NAME[need].path for need in row.needs),
            "reason": ""
            if row.metric.name in shown
            else absent.get(row.metric.name, "no recorded server has such an object"),
        }
        for subject in SUBJECTS
        for row in subject.families
    }


def main() -> None:
    for folder in SERVERS:
        bodies = by_resource(recorded(folder))
        values = sum(name in JOINED for name, _ in program(bodies, PERSONAL))
        different = len(differences(bodies, PERSONAL))
        record_result("recorded", folder, values=values, different=different)
    for family, proof in ledger().items():
        record_result("ledger", family, **proof)


if __name__ == "__main__":
    main()

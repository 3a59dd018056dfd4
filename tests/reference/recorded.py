"""Bodies of real servers beside the reference, for `docs/correctness.md`."""

from tests.bodies import recorded
from tests.correctness import record_result
from tests.reference.comparison import PERSONAL, differences
from tests.reference.program import program
from tests.reference.test_reference import by_resource


def main() -> None:
    for folder in ("recorded", "recorded_agents", "stock"):
        bodies = by_resource(recorded(folder))
        values = len(program(bodies, PERSONAL))
        different = len(differences(bodies, PERSONAL))
        record_result("recorded", folder, values=values, different=different)


if __name__ == "__main__":
    main()

"""The whole page of the bodies in `tests/bodies`, kept for comparison.

`page.txt` has the page of all collectors. `personal.txt` has the lines that are added
or changed if personal data is allowed. `recorded.txt` has a line for each family of the
recorded servers: the number of its samples, their sum, and a checksum of them.
`limits.txt` has all durations, sizes and counts that have a name in the code.
`python -m tests.golden` rewrites all; read the difference before you commit it.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from math import fsum
from pathlib import Path
from zlib import crc32

from tests.bodies import RECORDED_TIME, by_resource, inventory, recorded
from tests.collectors.samples import page
from tests.reference.comparison import PERSONAL
from tests.reference.program import program

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


def pages() -> dict[str, bytes]:
    """Return the expected content of the files."""
    known = page(inventory())
    lines = set(known.split("\n"))
    everything = page(inventory(personal=True)).split("\n")
    personal = "".join(f"{line}\n" for line in everything if line not in lines)
    return {
        "page.txt": known.encode(),
        "personal.txt": personal.encode(),
        "recorded.txt": "".join(map("{}\n".format, _families())).encode(),
        "limits.txt": "".join(map("{}\n".format, _limits())).encode(),
    }


def _limits() -> Iterator[str]:
    for path in sorted((ROOT / "api_exporter").rglob("[!_]*.py")):
        place, source = path.relative_to(ROOT).with_suffix(""), path.read_text()
        module = import_module(".".join(place.parts))
        for name, value in vars(module).items():
            is_own = f"\n{name} = " in source or f"\n{name}: " in source
            if is_own and name.isupper() and type(value) in {int, float}:
                yield f"{Path(*place.parts[1:])} {name} {value!r}"


def _families() -> Iterator[str]:
    settings = replace(PERSONAL, asked=RECORDED_TIME, now=RECORDED_TIME)
    for server in ("recorded", "recorded_agents", "stock"):
        found = defaultdict[str, list[tuple[str, float]]](list)
        for (name, labels), value in program(
            by_resource(recorded(server)), settings
        ).items():
            found[name].append((str(sorted(labels)), float(value)))
        for name, samples in sorted(found.items()):
            samples.sort()
            total = fsum(value for _, value in samples)
            checksum = crc32(str(samples).encode())
            yield f"{server} {name} {len(samples)} {total!r} {checksum:08x}"

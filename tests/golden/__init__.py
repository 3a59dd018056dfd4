"""The whole page of the bodies in `tests/bodies`, kept for comparison.

`page.txt` is all that every collector says; `personal.txt` has the lines that are there
only, or otherwise, where personal data may be told. `python -m tests.golden` rewrites
both; read the difference before it is committed.
"""

from pathlib import Path

from tests.bodies import inventory
from tests.collectors.samples import page

FOLDER = Path(__file__).parent


def pages() -> dict[str, bytes]:
    """What should be in the files."""
    known = page(inventory())
    lines = set(known.split("\n"))
    everything = page(inventory(personal=True)).split("\n")
    personal = "".join(f"{line}\n" for line in everything if line not in lines)
    return {"page.txt": known.encode(), "personal.txt": personal.encode()}

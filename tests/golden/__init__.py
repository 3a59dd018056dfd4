"""The whole page of the bodies in `tests/bodies`, kept for comparison.

`page.txt` has the page of all collectors. `personal.txt` has the lines that are added
or changed if personal data is allowed. `python -m tests.golden` rewrites both; read the
difference before you commit it.
"""

from pathlib import Path

from tests.bodies import inventory
from tests.collectors.samples import page

FOLDER = Path(__file__).parent


def pages() -> dict[str, bytes]:
    """Return the expected content of the files."""
    known = page(inventory())
    lines = set(known.split("\n"))
    everything = page(inventory(personal=True)).split("\n")
    personal = "".join(f"{line}\n" for line in everything if line not in lines)
    return {"page.txt": known.encode(), "personal.txt": personal.encode()}

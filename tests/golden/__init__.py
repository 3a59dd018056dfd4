"""The whole page of the bodies in `tests/bodies`, kept for comparison.

`page.txt` is all that every collector says but `drop_in`, whose page is `drop_in.txt`;
`personal.txt` and `drop_in_personal.txt` are the lines that are there only, or
otherwise, where personal data may be told. `python -m tests.golden` rewrites them; read
the difference before it is committed.
"""

from pathlib import Path

from tests.bodies import inventory
from tests.collectors.samples import DROP_IN, OURS, page

FOLDER = Path(__file__).parent


def pages() -> dict[str, bytes]:
    """What should be in the files."""
    files = {}
    for public, personal, collectors in (
        ("page.txt", "personal.txt", OURS),
        ("drop_in.txt", "drop_in_personal.txt", DROP_IN),
    ):
        known = page(inventory(), collectors)
        lines = set(known.split("\n"))
        everything = page(inventory(personal=True), collectors).split("\n")
        files[public] = known.encode()
        files[personal] = "".join(
            f"{line}\n" for line in everything if line not in lines
        ).encode()
    return files

"""The fast tests on every Python that we claim to run on and that is to be had here."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from acceptance.check import Failed, Missing, run

CLAIMED = ("3.11", "3.12", "3.13", "3.14")


def pythons(folder: Path) -> str:
    """The unit tests, with the newest dependencies."""
    seen = []
    for version in CLAIMED:
        found = interpreter(version)
        if found is None:
            seen.append(f"{version}: not here")
            continue
        tests = run("make", "units", f"PYTHON={found}", f"VENV={folder / version}")
        [passed] = re.findall(r"^PASSED \((.*)\)$", tests, re.MULTILINE) or [""]
        if not passed:
            raise Failed(f"{version}: no test passed")
        seen.append(f"{version}: {passed}")
    if all(line.endswith("not here") for line in seen):
        raise Missing(f"Python {', '.join(CLAIMED)}")
    return "\n".join(seen)


def interpreter(version: str) -> Path | None:
    """A Python of that version; None where there is none that starts."""
    name = f"python{version}"
    places = [
        *os.environ["PATH"].split(":"),
        *(str(p) for p in Path.home().glob(f".pyenv/versions/{version}.*/bin")),
    ]
    for place in places:
        found = shutil.which(name, path=place)
        if (
            found
            and not subprocess.run(
                [found, "-c", ""], check=False, capture_output=True
            ).returncode
        ):
            return Path(found)
    return None

"""The pure modules, which tests must cover to the last branch.

`python -m tools.pure` prints their files in the form that coverage expects.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def files() -> list[str]:
    """Return the files of the modules that the contract frees of the reactor."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    contracts = tools["importlinter"]["contracts"]
    [contract] = [c for c in contracts if "twisted" in c.get("forbidden_modules", ())]
    modules = [name.replace(".", "/") for name in contract["source_modules"]]
    return [f"{m}/*.py" if (ROOT / m).is_dir() else f"{m}.py" for m in modules]


if __name__ == "__main__":
    sys.stdout.write(",".join(files()))

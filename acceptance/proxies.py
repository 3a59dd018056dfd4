"""The table of NO_PROXY, made anew by Go's own library.

`go run . >../../tests/settings/no_proxy.json` in `acceptance/no_proxy` writes it, after
`main.go` or the library's version has changed.
"""

import subprocess
from pathlib import Path

from acceptance.check import ROOT, Failed, Missing, go, run

MAKER = ROOT / "acceptance" / "no_proxy"
TABLE = ROOT / "tests" / "settings" / "no_proxy.json"


def no_proxy(_folder: Path) -> str:
    """What Go says today is what our rules are held against."""
    try:
        # The first one says on stderr what it downloads.
        made = run(go(), "run", ".", cwd=MAKER, stderr=subprocess.PIPE)
    except Failed as error:
        raise Missing(str(error)) from None
    if made != TABLE.read_text():
        raise Failed(f"{TABLE.name} is not what Go says")
    return f"{made.count('environ')} rows"

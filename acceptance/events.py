"""Audit events, with a process that is killed two hundred times."""

import sys
from pathlib import Path

from acceptance.check import run

KILLS = 200


def kills(folder: Path) -> str:
    """Each of 20,000 events is written once."""
    run(
        *(
            sys.executable,
            "-m",
            "twisted.trial",
            f"--temp-directory={folder / 'trial'}",
        ),
        "tests.integration.test_events.KillTests",
        env={"EVENTS_KILLS": str(KILLS)},
    )
    return f"{KILLS} kills, {KILLS * 100} events, each of them once"

"""The files of the accounts' settings, and their changes, which a reload applies."""

from collections.abc import Callable
from pathlib import Path
from random import Random

from api_exporter.subjects.table import RESOURCES

QUICK = (1, 2)
SLOW = (5, 8, 12, 20)
"""Multiples of the usual intervals. Uneventful refreshes take most of the processor's
time and find least. So only one world of six has a quick account."""

VALUES: dict[str, tuple[str, ...]] = {
    "REFRESH_INTERVALS": (),
    "COLLECTORS": ("default", "default,memberships", "default,memberships,events"),
    "EXPOSE_PERSONAL_DATA": (
        *("false", "false", "true"),
        *("hostname,city", "email,connection_ip"),
    ),
    "PEER_DETAIL": ("all", "all", "none", "groups:All", "groups:nobody,Engineering"),
    "METRICS_MAX_AGE": ("", "", "1m", "10m", "2h"),
    "HTTP_TIMEOUT": ("30s", "30s", "10s"),
    "API_RETRY_ATTEMPTS": ("3", "3", "1"),
    "IMPORTANT_GROUPS": ("", "All", "nobody,Engineering"),
    "METRICS_DENY": ("", "netbird_api_peer_*", "netbird_api_groups"),
}
"""Values of the settings that change, by setting; empty for the default."""

AT_START = tuple(VALUES)[1:-2]
"""Settings with a value from the start on; the others have none until a change."""

THRESHOLDS = ("{}", '{"peers": {"fleet_lost": 2}}', '{"days": {"login_soon": 5}}')
"""Contents of THRESHOLDS_FILE."""

MISTAKE = "HTTP_TIMEOUT=soon\n"


def intervals(factor: int) -> str:
    """Return the intervals of all resources, `factor` times as long as usual."""
    intervals = {r.name: factor * r.interval for r in RESOURCES if factor > 1}
    intervals["events"] = 60.0 * factor
    return ",".join(f"{name}={interval:g}s" for name, interval in intervals.items())


class AccountFiles:
    """The files in ACCOUNTS_DIR, and the settings of the process.

    Args:
        environ: the environment of the exporter.

    Attributes:
        lines: the settings of each account.
        removed: accounts without a file.
    """

    def __init__(self, folder: Path, environ: dict[str, str], chance: Random) -> None:
        self._folder = folder
        self._environ = environ
        self._chance = chance
        self.lines: dict[str, dict[str, str]] = {}
        self.removed: set[str] = set()

    def write(self, name: str, more: str = "") -> None:
        """Write the file of an account, with more text at its end."""
        lines = (
            f"{key}='{value}'\n" for key, value in self.lines[name].items() if value
        )
        self.removed.discard(name)
        self._file(name).write_text("".join(lines) + more)

    def remove(self, name: str) -> None:
        self.removed.add(name)
        self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.conf"

    def change(self, name: str) -> str:
        """Change a setting of an account by chance. Return its name."""
        setting = self._chance.choice([*VALUES])
        values = VALUES[setting] or [*map(intervals, SLOW)]
        value = self._chance.choice(values)
        self.lines[name][setting] = value
        self.write(name)
        return f"{name}: {setting}={value[:40]}"

    def change_process(self) -> str:
        """Change a setting of the process by chance. Return its name."""
        changes: tuple[Callable[[], str], ...] = (
            self._change_thresholds,
            self._change_lookup,
        )
        return self._chance.choice(changes)()

    def _change_thresholds(self) -> str:
        file = self._folder.parent / "thresholds.json"
        file.write_text(self._chance.choice(THRESHOLDS))
        self._environ["THRESHOLDS_FILE"] = str(file)
        return file.name

    def _change_lookup(self) -> str:
        """Change a setting that needs a restart: a reload only reports it."""
        lookup = "false" if self._environ["LOOKUP"] == "true" else "true"
        self._environ["LOOKUP"] = lookup
        return f"LOOKUP={lookup}"

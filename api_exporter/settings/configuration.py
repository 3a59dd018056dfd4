"""What the program is told: options, configuration file and environment, checked."""

import os
from collections.abc import Mapping
from pathlib import Path

from twisted.logger import Logger

from api_exporter.settings import file
from api_exporter.settings.options import Options
from api_exporter.settings.table import Settings, SettingsError, read

log = Logger()


def configured(options: Options, overriding: Mapping[str, str]) -> Settings:
    """Read the configuration file and the environment; raises SystemExit.

    What the file sets gets into the environment of the process, because libraries read
    theirs there, too: SSL_CERT_FILE for one.

    Args:
        overriding: variables that win over both; an empty one counts as not set.
    """
    if options["config"] is not None:
        _load(Path(options["config"]))
    try:
        return read({**os.environ, **overriding})
    except SettingsError as error:
        raise _refusal(error.problems) from None


def _load(path: Path) -> None:
    try:
        found = file.load(path)
    except file.ConfigurationError as error:
        raise _refusal(error.problems) from None
    os.environ.update(file.below(os.environ, found))
    if file.readable_by_all(path):
        log.warn("{path} can be read by everybody on this machine", path=str(path))


def _refusal(problems: list[str]) -> SystemExit:
    return SystemExit("\n".join(f"api-exporter: {problem}" for problem in problems))

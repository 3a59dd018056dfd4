"""How an account gets to its upstream, where several settings speak of one thing."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, cast

from msgspec import Struct

from api_exporter.settings.certificate import IdentityFiles
from api_exporter.settings.credential import NotYet
from api_exporter.settings.proxy import Proxy
from api_exporter.settings.setting import Passing
from api_exporter.settings.table import (
    UPSTREAM_API_URL,
    UPSTREAM_CLIENT_CERT_FILE,
    UPSTREAM_CLIENT_KEY_FILE,
    UPSTREAM_PROXY,
)
from api_exporter.settings.way import DIRECT, Way, way


class Reach(Struct, frozen=True):
    """What follows from the settings.

    Attributes:
        identity: who we are to a gateway that asks for it; None where it is nobody.
    """

    way: Way = DIRECT
    identity: IdentityFiles | None = None


def reach(
    values: Mapping[str, object],
    environ: Mapping[str, str],
    problems: list[str],
    place: Callable[[str], str],
) -> Reach:
    """Check them against each other.

    Args:
        values: by the settings' names in lower case; None where one is wrong.
        place: what a problem with the setting of that name begins with.
    """
    return Reach(
        _way(values, environ, problems), _identity(values, environ, problems, place)
    )


def _way(
    values: Mapping[str, object], environ: Mapping[str, str], problems: list[str]
) -> Way:
    url = values[UPSTREAM_API_URL.name.lower()]
    own = cast("Proxy | Literal['none'] | None", values[UPSTREAM_PROXY.name.lower()])
    if isinstance(url, str):
        try:
            return way(url, own, environ)
        except ValueError as error:
            problems.append(str(error))
    return DIRECT


def _identity(
    values: Mapping[str, object],
    environ: Mapping[str, str],
    problems: list[str],
    place: Callable[[str], str],
) -> IdentityFiles | None:
    first, second = UPSTREAM_CLIENT_CERT_FILE.name, UPSTREAM_CLIENT_KEY_FILE.name
    certificate, key = values[first.lower()], values[second.lower()]
    if not environ.get(first, "").strip():
        if key is not None:
            problems.append(
                f"{place(second)}{second} is set, but not {first}: a key alone proves"
                " nothing"
            )
        return None
    if not isinstance(certificate, Path) or (
        key is None and environ.get(second, "").strip()
    ):
        return None  # which has been told
    files = IdentityFiles(certificate, key if isinstance(key, Path) else certificate)
    try:
        files.read()
    except ValueError as error:
        problem = f"{place(first)}{first}: {error}"
        problems.append(Passing(problem) if isinstance(error, NotYet) else problem)
    return files

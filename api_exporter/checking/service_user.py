"""The files of the settings, read as the user of the service when root checks them."""

import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from api_exporter.settings.errors import ConfigurationError

SERVICE_USER = "api-exporter"
"""The user of the unit that the package installs."""


def user_lines(load: Callable[[], object]) -> list[str]:
    """Return what the user of the service cannot read; nothing without root.

    Args:
        load: loads the settings and their files; raises ConfigurationError.
    """
    if os.geteuid() != 0:
        return []
    name = f"{SERVICE_USER}, the user of the service,"
    try:
        with _acting_as(pwd.getpwnam(SERVICE_USER)):
            load()
    except (KeyError, OSError) as error:
        why = "does not exist" if isinstance(error, KeyError) else "cannot be tested"
        return [f"root may read files that others may not: {name} {why}"]
    except ConfigurationError as error:
        lines = [f"for {SERVICE_USER}: {problem}" for problem in error.problems]
        return [*lines, f"{name} needs no permission for credentials of systemd"]
    return [f"{name} can read all files"]


@contextmanager
def _acting_as(user: pwd.struct_passwd) -> Iterator[None]:
    """Have the permissions of a user for a while; raise OSError.

    In a container root may have no right to that, or the user no number (EINVAL).
    """
    group, groups = os.getegid(), os.getgroups()
    os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
    os.setegid(user.pw_gid)
    os.seteuid(user.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)

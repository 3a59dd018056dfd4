"""Where releases are published, as the one place says."""

import re

from tests.deploy.programs import DEPLOY


def addresses() -> dict[str, str]:
    """By name."""
    text = (DEPLOY / "addresses").read_text()
    return dict(re.findall(r"^([A-Z]+)=(.+)$", text, re.MULTILINE))

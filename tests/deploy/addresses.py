"""The addresses of published releases, read from `deploy/addresses`."""

import re

from tests.deploy.programs import DEPLOY


def addresses() -> dict[str, str]:
    text = (DEPLOY / "addresses").read_text()
    return dict(re.findall(r"^([A-Z]+)=(.+)$", text, re.MULTILINE))

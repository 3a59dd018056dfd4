"""`--runbook`: the steps for one alert as text, for a terminal without a browser."""

import re

from api_exporter.web.runbooks import MISSING_MESSAGE, RUNBOOKS_FILE

SOURCE = RUNBOOKS_FILE.with_suffix(".md")


def runbook_text(name: str) -> str:
    """Return a runbook; raise ValueError with the allowed names for another name."""
    if not SOURCE.exists():
        raise ValueError(MISSING_MESSAGE.strip())
    _, *sections = SOURCE.read_text(encoding="utf-8").split("\n## ")
    texts = {section.split("\n", 1)[0]: section for section in sections}
    for title, text in texts.items():
        if title.lower() == name.lower():
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)  # without links
            return words.replace("**", "").rstrip() + "\n"
    allowed = ", ".join(texts)
    raise ValueError(f"{name!r} is no runbook; it must be one of {allowed}")

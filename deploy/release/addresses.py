"""Replace the addresses of `deploy/addresses` in all files by a publisher's own."""

import os
import re
import subprocess
import sys
from pathlib import Path

PLACE = Path("deploy/addresses")

VALUES = Path("deploy/helm/api-exporter/values.yaml")

ALLOWED = {
    "FORGE": r"https?://[\w.:/~-]+\w",
    "IMAGE": r"[\w.-]+(:\d+)?/\w[\w./-]*\w",
    "CHART": r"[\w.-]+(:\d+)?/\w[\w./-]*\w",
    "MAIL": r"[\w.+-]+@[\w.-]+\w",
}


def addresses(text: str) -> dict[str, str]:
    """Return the file's addresses by name."""
    return dict(re.findall(r"^([A-Z]+)=(.+)$", text, re.MULTILINE))


def replaced(text: str, old: dict[str, str], new: dict[str, str]) -> str:
    """Replace all addresses at once, because one may be a part of another."""
    by_address = {old[name]: new[name] for name in old}
    pattern = "|".join(map(re.escape, sorted(by_address, key=len, reverse=True)))
    return re.sub(pattern, lambda found: by_address[found[0]], text)


def in_values(text: str, image: str) -> str:
    """Replace registry and name of the image, two lines of the chart's values."""
    registry, _, name = image.partition("/")
    text = re.sub(r"(?m)^(  registry:) .*", rf"\1 {registry}", text, count=1)
    return re.sub(r"(?m)^(  repository:) .*", rf"\1 {name}", text, count=1)


def main() -> None:
    """Replace the addresses that the environment has."""
    old = addresses(PLACE.read_text(encoding="utf-8"))
    new = {name: os.environ.get(name) or old[name] for name in old}
    for name, address in new.items():
        if not re.fullmatch(ALLOWED[name], address, re.ASCII):
            sys.exit(
                f"{name}: {address!r} is not allowed: it must look like {old[name]}"
            )
    if new["IMAGE"] == new["CHART"]:
        sys.exit("IMAGE and CHART: both are the same, and could not be told apart")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout
    for path in map(Path, filter(None, listed.split("\0"))):
        try:
            before = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # deleted, or not a text
            continue
        after = replaced(before, old, new)
        if path == VALUES:
            after = in_values(after, new["IMAGE"])
        if after != before:
            path.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()

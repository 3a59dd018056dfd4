"""Make an image the same each time: `settle.py DIRECTORY`, where an engine has put it.

The directory is what `push … dir:DIRECTORY` writes. In the format with health checks
engines tell of the containers that they built in, whose names are made up each time.
"""

import hashlib
import json
import sys
from pathlib import Path

MADE_UP = ("container", "container_config")
"""Of the configuration, beside the host's name. Nothing reads them."""


def main(directory: Path) -> None:
    """Write configuration and manifest anew."""
    manifest = json.loads((directory / "manifest.json").read_text())
    described = manifest["config"]
    old = directory / described["digest"].removeprefix("sha256:")
    configuration = json.loads(old.read_text())
    for key in MADE_UP:
        configuration.pop(key, None)
    configuration["config"].pop("Hostname", None)
    content = json.dumps(configuration, sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()
    old.unlink()
    (directory / digest).write_bytes(content)
    described.update(digest=f"sha256:{digest}", size=len(content))
    (directory / "manifest.json").write_text(json.dumps(manifest, sort_keys=True))


main(Path(sys.argv[1]))

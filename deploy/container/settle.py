"""Make an image reproducible: `settle.py DIRECTORY`, as written by `push … dir:`.

In the image format with health checks, engines record the containers of the build,
which have random names.
"""

import hashlib
import json
import sys
from pathlib import Path

RANDOM_KEYS = ("container", "container_config")
"""Keys of the configuration with random values, which no program reads."""


def main(directory: Path) -> None:
    """Write configuration and manifest without random values."""
    manifest = json.loads((directory / "manifest.json").read_text())
    config = manifest["config"]
    old = directory / config["digest"].removeprefix("sha256:")
    configuration = json.loads(old.read_text())
    for key in RANDOM_KEYS:
        configuration.pop(key, None)
    configuration["config"].pop("Hostname", None)
    content = json.dumps(configuration, sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()
    old.unlink()
    (directory / digest).write_bytes(content)
    config.update(digest=f"sha256:{digest}", size=len(content))
    (directory / "manifest.json").write_text(json.dumps(manifest, sort_keys=True))


main(Path(sys.argv[1]))

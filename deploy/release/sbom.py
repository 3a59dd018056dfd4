"""Complete an SBOM by the parts that are missing in lists of Python packages.

These are Python, its OpenSSL libraries, Debian's libraries, the hashes of the installed
files, and the exporter's own dependencies.

`python sbom.py DIRECTORY REPORT WHEEL <before >after` runs with the Python of the
executables. DIRECTORY is one of them, REPORT is pip's report of the installation.
"""

import hashlib
import json
import platform
import re
import ssl
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cryptography.hazmat.bindings.openssl.binding import Binding

Part = dict[str, Any]


def linked() -> list[Part]:
    """Return Python and both OpenSSL libraries."""
    openssl = Binding.lib.OpenSSL_version(Binding.lib.OPENSSL_VERSION)
    versions = {
        ("python", platform.python_version(), "of the executables"),
        ("openssl", ssl.OPENSSL_VERSION, "of Python's own"),
        ("openssl", Binding.ffi.string(openssl).decode(), "of cryptography"),
    }
    found = []
    for name, said, origin in sorted(versions):
        version = re.search(r"\d+(\.\d+)+", said)[0]  # type: ignore[index]
        part = {
            "type": "application" if name == "python" else "library",
            "bom-ref": f"{name}@{version} {origin}",
            "name": name,
            "version": version,
            "description": origin,
            "purl": f"pkg:generic/{name}@{version}",
            "cpe": f"cpe:2.3:a:{name}:{name}:{version}:*:*:*:*:*:*:*",
        }
        found.append(part)
    return found


def debian(name: str, origin: str) -> Part:
    """Return an installed package of Debian."""
    wanted = "--showformat=${Version} ${Architecture}\n"
    command = ["dpkg-query", "--show", wanted, name]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    version, architecture = said.splitlines()[0].split()
    purl = f"pkg:deb/debian/{name}@{quote(version, safe='')}?arch={architecture}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "description": origin,
        "purl": purl,
    }


def plain(name: str) -> str:
    """Return a name as normalized by the Python index."""
    return re.sub(r"[-_.]+", "-", name).lower()


def sha256(digest: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": digest}]


def main(directory: Path, report: Path, wheel: Path) -> None:
    """Read an SBOM from stdin and write the complete one to stdout."""
    bom = json.load(sys.stdin)
    hashes = {
        plain(one["metadata"]["name"]): one["download_info"]["archive_info"]["hashes"]
        for one in json.loads(report.read_text())["install"]
    }
    for part in bom["components"]:
        part["hashes"] = sha256(hashes[plain(part["name"])]["sha256"])
    ours = {plain(re.split(r"[^\w.-]", x)[0]) for x in requires("api-exporter") or ()}
    direct = [x["bom-ref"] for x in bom["components"] if plain(x["name"]) in ours]
    libraries = sorted(x.name for x in (directory / "_internal/licenses").iterdir())
    more = [*linked(), *(debian(name, "of the executables") for name in libraries)]
    bom["components"] += more
    root = bom["metadata"]["component"]
    root["hashes"] = sha256(hashlib.sha256(wheel.read_bytes()).hexdigest())
    depends = {
        "ref": root["bom-ref"],
        "dependsOn": direct + [x["bom-ref"] for x in more],
    }
    others = [x for x in bom["dependencies"] if x["ref"] != root["bom-ref"]]
    bom["dependencies"] = [depends, *others]
    json.dump(bom, sys.stdout, indent=2)


main(*map(Path, sys.argv[1:]))

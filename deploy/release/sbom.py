"""Adds to an SBOM what no list of packages knows: Python, what it encrypts with, and
the libraries of Debian's.

`python sbom.py DIRECTORY <before >after`, with the Python that is in the executables;
DIRECTORY is one of them.
"""

import json
import platform
import re
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from cryptography.hazmat.bindings.openssl.binding import Binding

openssl = Binding.lib.OpenSSL_version(Binding.lib.OPENSSL_VERSION)
versions = {
    ("python", platform.python_version(), "of the executables"),
    ("openssl", ssl.OPENSSL_VERSION, "of Python's own"),
    ("openssl", Binding.ffi.string(openssl).decode(), "of cryptography"),
}
bom = json.load(sys.stdin)
for name, said, whose in sorted(versions):
    version = re.search(r"\d+(\.\d+)+", said)[0]
    bom["components"].append(
        {
            "type": "application" if name == "python" else "library",
            "bom-ref": f"{name}@{version} {whose}",
            "name": name,
            "version": version,
            "description": whose,
            "purl": f"pkg:generic/{name}@{version}",
            "cpe": f"cpe:2.3:a:{name}:{name}:{version}:*:*:*:*:*:*:*",
        }
    )
for path in sorted(Path(sys.argv[1], "_internal/licenses").glob("*")):
    asked = [
        "dpkg-query",
        "--show",
        "--showformat=${Version} ${Architecture}\n",
        path.name,
    ]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    version, architecture = said.splitlines()[0].split()
    purl = f"pkg:deb/debian/{path.name}@{quote(version, safe='')}?arch={architecture}"
    bom["components"].append(
        {
            "type": "library",
            "bom-ref": purl,
            "name": path.name,
            "version": version,
            "description": "of the executables",
            "purl": purl,
        }
    )
json.dump(bom, sys.stdout, indent=2)

"""Adds to an SBOM what no list of packages knows: Python, and what it encrypts with.

`python sbom.py <before >after`, with the Python that is in the executables.
"""

import json
import platform
import re
import ssl
import sys

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
json.dump(bom, sys.stdout, indent=2)

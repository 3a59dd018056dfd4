"""Fuzz target: the web configuration file.

* Only ConfigurationError is raised, with a line for a mistake.
* No line repeats a user's password or its hash.
* Accepted users and headers are valid, and loading the file again changes nothing.
"""

import re
from pathlib import Path

from api_exporter.access.passwords import make_decoy
from api_exporter.access.tls import make_context
from api_exporter.access.web_config import BCRYPT_HASH, changes_needing_restart, load
from api_exporter.settings.errors import ConfigurationError

PATH = Path("web.yml")
HASHED = b"$2b$10$" + b"s3cr3tHash/" * 4 + b"abcdefghi"

SEEDS = (
    b"basic_auth_users:\n  prometheus: " + HASHED + b"\n",
    b"basic_auth_users: {a: '" + HASHED + b"', a: x}\n",
    b"http_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\n",
    b"http_server_config: {headers: {Content-Security-Policy: \"default-src 'self'\"}}",
    b"rate_limit:\n  interval: 1m30s\n",
    b"tls_server_config:\n  cert_file: a.pem\n  key_file: b.pem\n"
    b"  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: c.pem\n",
    b"tls_server_config: {cert_file: x, key_file: y, min_version: TLS12,"
    b" cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256],"
    b" client_allowed_sans: [a], prefer_server_cipher_suites: no}",
    b'tls_server_config: {cert_file: "\\e[2J\\n\xd7\x8f.pem", key_file: x}',
    b"a: &a [*a, *a]\n? [b]\n: !!binary x\n",
    b"# nothing\n---\n~\n",
)


def attempt(data: bytes) -> None:
    def read(path: Path) -> bytes:
        if path.name == PATH.name:
            return data
        raise FileNotFoundError(2, "No such file or directory")

    try:
        made = load(PATH, read)
        if made.tls is not None:
            make_context(made.tls, PATH, read)
            raise AssertionError("there is no such certificate")
    except ConfigurationError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.isprintable(), problem
            assert problem.startswith(PATH.name), problem
            # Pieces of the hash may be names of keys and ciphers.
            assert HASHED[:30].decode() not in problem, problem
            assert len(problem) < 5000, problem  # it includes the whole path
        return
    for user, digest in made.users.items():
        assert ":" not in user, user
        assert re.search(BCRYPT_HASH, digest), digest
    for name, value in made.headers.items():
        assert re.fullmatch(r"[\x20-\x7e]*", name + value), (name, value)
    if made.users:
        assert re.search(BCRYPT_HASH, make_decoy(made.users)), made.users
    assert changes_needing_restart(made, load(PATH, read)) == []

"""Fuzz target: the web configuration file.

* Only ConfigurationError is raised, with one line for each mistake.
* No line repeats a user's password or its hash.
* Accepted users and headers are valid, and loading the file again changes nothing.
"""

import re
from pathlib import Path

from api_exporter.access.web_config import BCRYPT_HASH, changes_needing_restart, load
from api_exporter.settings.errors import ConfigurationError

PATH = Path("web.yml")
HASHED = b"$2b$10$" + b"s3cr3tHash/" * 4 + b"abcdefghi"

SEEDS = (
    b"basic_auth_users:\n  prometheus: " + HASHED + b"\n",
    b"basic_auth_users: {a: '" + HASHED + b"', a: x}\n",
    b"http_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\n",
    b"http_server_config: {headers: {Content-Security-Policy: \"default-src 'self'\"}}",
    b"rate_limit:\n  interval: 1m30s\n  burst: 20\n",
    b"tls_server_config:\n  cert_file: a.pem\n  key_file: b.pem\n"
    b"  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: c.pem\n",
    b"tls_server_config: {cert: x, key: y, min_version: TLS12, max_version: TLS10,"
    b" cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256],"
    b" curve_preferences: [X25519], client_allowed_sans: [a],"
    b" prefer_server_cipher_suites: no}",
    b'tls_server_config: {cert_file: "\\e[2J\\n\xd7\x8f.pem", key: x}',
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
        assert b":" not in user, user
        assert BCRYPT_HASH.fullmatch(digest.decode()), digest
    for name, value in made.headers:
        assert re.fullmatch(rb"[\x20-\x7e]*", name + value), (name, value)
    assert BCRYPT_HASH.fullmatch(made.decoy.decode()), made.decoy
    assert changes_needing_restart(made, load(PATH, read)) == []

"""Names of TLS: what Go calls ciphers, curves, versions and policies."""

from msgspec import Struct

CIPHERS = {
    # Authenticated, with forward secrecy: what clients of the last ten years have.
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    # What clients have that know neither TLS 1.2 nor what came with it.
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    # Without forward secrecy: Go itself lists them where GODEBUG asks for them.
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
}
"""Of TLS 1.2 and older."""

USUAL, OLD = tuple(CIPHERS.values())[:6], tuple(CIPHERS.values())[6:10]

CIPHERS_13 = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""Of TLS 1.3, where both have the same names."""

CURVES = {
    "X25519": "X25519",
    "CurveP256": "P-256",
    "CurveP384": "P-384",
    "CurveP521": "P-521",
}

USUAL_CURVES = ("X25519", "P-256", "P-384")
"""Without a wish."""

NEW_CURVE = "X25519MLKEM768"
"""Before these, where OpenSSL has it: what is recorded now stays unread later, too."""

VERSIONS = {"TLS10": 0x301, "TLS11": 0x302, "TLS12": 0x303, "TLS13": 0x304}
"""With their numbers on the wire."""


class ClientAuth(Struct, frozen=True):
    """What is asked of clients' certificates.

    Attributes:
        description: the same for people.
        asked: whether OpenSSL asks for one.
        required: whether nobody comes in without a certificate.
        verified: whether one that is shown must be of an authority.
    """

    description: str
    asked: bool = True
    required: bool = False
    verified: bool = False


_ANY = ClientAuth("client certificates required, but not verified", required=True)

CLIENT_AUTH = {
    "NoClientCert": ClientAuth("no client certificates", asked=False),
    "RequestClientCert": ClientAuth(
        "client certificates asked for, but neither required nor verified"
    ),
    "RequireAnyClientCert": _ANY,
    "RequireClientCert": _ANY,  # its name of old
    "VerifyClientCertIfGiven": ClientAuth(
        "client certificates verified, but not required", verified=True
    ),
    "RequireAndVerifyClientCert": ClientAuth(
        "client certificates required and verified", required=True, verified=True
    ),
}

REQUIRED = ("RequireAnyClientCert", "RequireAndVerifyClientCert")
"""With these nobody comes in without a certificate."""

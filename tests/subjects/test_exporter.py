"""Findings about the exporter appear, stay away, and end."""

from msgspec.structs import replace

from api_exporter.attention.thresholds import Lifetime
from api_exporter.netbird.records import CurrentUser, Permissions, User
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.subjects.reverse_proxy import ProxyToken
from api_exporter.subjects.users import AccessToken
from tests.attention.looking import (
    DAY,
    HOUR,
    NOW,
    FindingsTestCase,
    at,
    findings,
    group,
    seen,
)
from tests.inventories import inventory_of


class ExporterExpiryTests(FindingsTestCase):
    def test_certificates(self) -> None:
        """A certificate that expires within a week is a finding."""
        texts = (
            "ApiExporterUpstreamCertificateExpiresSoon: The certificate of the NetBird"
            " API {}: peers and this exporter cannot connect{}. ({})",
            "ApiExporterClientCertificateExpiresSoon: The exporter's client certificate"
            " {}: the gateway of the NetBird API refuses requests{}. ({})",
        )
        for left, words in (
            (7 * DAY, None),
            (7 * DAY - 1, ("expires soon", " after that", "until 604799")),
            (0, ("has expired", "", "since 0")),
        ):
            end = NOW + left
            life = Lifetime(None, end)
            for lives in ((life, life), (life, None), (None, life)):
                known = zip(texts, lives, strict=True)
                lines = [text.format(*words) for text, one in known if words and one]
                looked = seen(
                    inventory_of(),
                    server_certificate=lives[0],
                    client_certificate=lives[1],
                )
                self.tells(looked, *lines)

    def test_short_lives(self) -> None:
        """Soon is in the last third of a life, very soon in its last ninth."""
        for life, left, token, other in (
            (12 * HOUR, 12 * HOUR, "", False),
            (12 * HOUR, 4 * HOUR, "", False),
            (12 * HOUR, 4 * HOUR - 1, "ExpiresSoon", True),
            (9 * DAY, DAY, "ExpiresSoon", True),
            (9 * DAY, DAY - 1, "ExpiresVerySoon", True),
            (90 * DAY, 14 * DAY, "", False),
            (90 * DAY, 4 * DAY, "ExpiresSoon", True),
            (90 * DAY, 3 * DAY - 1, "ExpiresVerySoon", True),
            (DAY, 0, "ExpiresVerySoon", True),
            (-DAY, 0, "ExpiresVerySoon", True),
        ):
            begin, end = at(left - life), at(left)
            certificate = Lifetime(NOW + left - life, NOW + left)
            looked = seen(
                inventory_of(
                    access_tokens=(
                        AccessToken(
                            id="t",
                            created_at=begin,
                            expiration_date=end,
                            last_used=at(0),
                        ),
                    ),
                    proxy_tokens=(
                        ProxyToken(
                            id="p", created_at=begin, expires_at=end, last_used=at(0)
                        ),
                    ),
                    users=(),
                ),
                server_certificate=certificate,
                client_certificate=certificate,
            )
            found = sorted(one.alert for one in findings(looked))
            expected = [f"ApiExporterToken{token}"] if token else []
            if other:
                expected += [
                    "ApiExporterClientCertificateExpiresSoon",
                    "ApiExporterUpstreamCertificateExpiresSoon",
                    "NetBirdProxyTokenExpiresSoon",
                ]
            self.assertEqual(sorted(expected), found, (life, left))


class ExporterTests(FindingsTestCase):
    def test_limited(self) -> None:
        """The finding of a user with too few rights says what to do."""
        user = User(id="me", role="user", is_current=True)
        states = {"peers": ResourceState(interval=30)}
        looked = seen(inventory_of(users=(user,)), states=states)
        self.tells(
            looked,
            ": The token's user has the role user and may not read everything. The"
            " exporter withholds peers. Use the token of a service user with the role"
            " auditor.",
        )
        [finding] = findings(looked)
        self.assertEqual(("warning", ""), (finding.severity, finding.alert))
        nobody = CurrentUser(id="me", permissions=Permissions(is_restricted=True))
        [finding] = findings(seen(inventory_of(current_user=(nobody,)), states=states))
        self.assertEqual(
            "The token's user may not read everything", finding.text.partition(".")[0]
        )
        admin = inventory_of(users=(replace(user, role="admin"),))
        self.tells(seen(admin, states=states))

    def test_rejected(self) -> None:
        """Records that are left out are a finding."""
        for number, words in (
            (0, ""),
            (1, "1 unreadable record"),
            (2, "2 unreadable records"),
        ):
            state = ResourceState(interval=30, last_success=NOW, rejected=number)
            line = (
                f"ApiExporterRecordsRejected: Resource routes has {words}, left out of"
                " the metrics: its counts are too small."
            )
            self.tells(seen(inventory_of(), states={"routes": state}), words and line)

    def test_detail(self) -> None:
        """A missing group of PEER_DETAIL is a finding once the groups are known."""
        wanted = frozenset({"servers", "g-laptops", "gone"})
        inventory = inventory_of(
            detail=wanted, groups=(group("servers"), group("laptops"))
        )
        self.tells(inventory, ": Group gone does not exist, but PEER_DETAIL names it.")
        self.tells(inventory_of(detail=wanted))

"""Users of another exporter learn the names of its settings in this exporter."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.environment import synonym_errors
from tests.settings.test_definitions import problems

URL = "NETBIRD_API_URL is a setting of netbird-api-exporter: use UPSTREAM_API_URL"
TOKEN = (
    "NETBIRD_API_TOKEN is a setting of netbird-api-exporter: use UPSTREAM_API_TOKEN"
    " or UPSTREAM_API_TOKEN_FILE"
)
THEIRS = {"NETBIRD_API_URL": "https://vpn.example", "NETBIRD_API_TOKEN": "nbp_secret"}
OURS = {"UPSTREAM_API_URL": "https://vpn.example", "UPSTREAM_API_TOKEN": "nbp_other"}


class SynonymsTests(SynchronousTestCase):
    def test_misnamed(self) -> None:
        """A name of the other exporter is reported if the setting itself is missing."""
        for environ, lines in (
            ({}, []),
            (THEIRS, [URL, TOKEN]),
            ({**THEIRS, "NETBIRD_API_URL": " "}, [TOKEN]),
            ({**THEIRS, "UPSTREAM_API_URL": "x"}, [TOKEN]),
            ({**THEIRS, "UPSTREAM_API_TOKEN": "x"}, [URL]),
            ({**THEIRS, "UPSTREAM_API_TOKEN_FILE": "x"}, [URL]),
            ({**THEIRS, "UPSTREAM_API_TOKEN": ""}, [URL, TOKEN]),
            ({**THEIRS, **OURS}, []),
        ):
            self.assertEqual(lines, synonym_errors(environ))

    def test_refused(self) -> None:
        """This error precedes those of missing settings, and repeats no token."""
        *ours, url, token = problems(THEIRS)
        self.assertEqual([URL, TOKEN], ours)
        self.assertTrue(url.startswith("UPSTREAM_API_URL is not set: "), url)
        self.assertTrue(token.startswith("UPSTREAM_API_TOKEN is not set: "), token)
        self.assertNotIn("secret", "".join([*ours, url, token]))

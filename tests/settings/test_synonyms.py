"""Those who come from another exporter are told what its settings are called here."""

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings import file
from api_exporter.settings.environment import read, synonyms
from api_exporter.settings.errors import ConfigurationError

URL = (
    "NETBIRD_API_URL is set, which is netbird-api-exporter's name: here it is"
    " UPSTREAM_API_URL"
)
TOKEN = (
    "NETBIRD_API_TOKEN is set, which is netbird-api-exporter's name: here it is"
    " UPSTREAM_API_TOKEN or UPSTREAM_API_TOKEN_FILE"
)
THEIRS = {"NETBIRD_API_URL": "https://vpn.example", "NETBIRD_API_TOKEN": "nbp_secret"}
OURS = {"UPSTREAM_API_URL": "https://vpn.example", "UPSTREAM_API_TOKEN": "nbp_other"}


class SynonymsTests(SynchronousTestCase):
    def problems(self, environ: dict[str, str]) -> list[str]:
        try:
            read(environ)
        except ConfigurationError as error:
            return error.problems
        return []

    def test_misnamed(self) -> None:
        """What is set under another name alone is named, with ours."""
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
            self.assertEqual(lines, synonyms(environ))

    def test_refused(self) -> None:
        """It is said first, before what is missing, and no token is repeated."""
        problems = self.problems(THEIRS)
        self.assertEqual([URL, TOKEN], problems[:2])
        self.assertEqual(4, len(problems))
        for problem, name in zip(
            problems[2:], ("UPSTREAM_API_URL", "UPSTREAM_API_TOKEN"), strict=True
        ):
            self.assertTrue(problem.startswith(f"{name} is not set: "), problem)
        self.assertNotIn("secret", "".join(problems))

    def test_file(self) -> None:
        """It is said of a configuration file that was made for the other program."""
        path = Path(self.mktemp())
        path.write_text("".join(f"{name}={value}\n" for name, value in THEIRS.items()))
        for environ, lines in (({}, [URL, TOKEN]), (OURS, [])):
            together = file.below(environ, file.load(path))
            self.assertEqual(lines, self.problems(together)[:2])

    def test_side_by_side(self) -> None:
        """One environment may serve both programs."""
        settings = read({**THEIRS, **OURS})
        self.assertEqual("https://vpn.example", settings.accounts[""].upstream_api_url)

    def test_several_accounts(self) -> None:
        """Where accounts have files of their own, nothing is missing here."""
        folder = self.mktemp()
        Path(folder).mkdir()
        [problem] = self.problems({**THEIRS, "ACCOUNTS_DIR": folder})
        self.assertTrue(problem.startswith("ACCOUNTS_DIR: "), problem)

    def test_another_mistake(self) -> None:
        """Where ours are set, theirs are no part of what is wrong."""
        [problem] = self.problems({**THEIRS, **OURS, "LOG_LEVEL": "loud"})
        self.assertTrue(problem.startswith("LOG_LEVEL: "), problem)

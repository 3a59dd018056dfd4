"""A folder of accounts: the files that count, precedence, and errors."""

import os
from collections.abc import Mapping
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.accounts import secrets_of
from api_exporter.settings.definitions import ACCOUNT_SETTINGS, AccountSettings
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError, quote_value

CANARY = "nbp_c4nary1"
OTHER = "nbp_c4nary2"
URL = "https://api.example"
ONE = {"UPSTREAM_API_URL": URL, "UPSTREAM_API_TOKEN": CANARY}


class FolderTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.folder = Path(self.mktemp())
        self.folder.mkdir()

    def write(self, name: str, *lines: str) -> Path:
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    def accounts(self, **environ: str) -> Mapping[str, AccountSettings]:
        return read_settings({"ACCOUNTS_DIR": str(self.folder), **environ}).accounts

    def refused(self, **environ: str) -> ConfigurationError:
        error: ConfigurationError = self.assertRaises(
            ConfigurationError, self.accounts, **environ
        )
        self.assertNotIn("c4nary", str(error))
        return error

    def problems(self, **environ: str) -> list[str]:
        return list(self.refused(**environ).problems)


class AcceptedTests(FolderTestCase):
    def test_names(self) -> None:
        """A file NAME.conf is an account of that name, and other files are not."""
        for name in ("acme", "b.c", "D_1-x"):
            self.write(f"{name}.conf", f"UPSTREAM_API_TOKEN={CANARY}")
        for name in ("a b.conf", "acme.conf~", ".acme.conf.swp", "README", "é.conf"):
            self.write(name, "what is this?")
        (self.folder / "folder.conf").mkdir()
        found = self.accounts(UPSTREAM_API_URL=URL)
        self.assertEqual(["D_1-x", "acme", "b.c"], sorted(found))
        self.assertEqual("acme", found["acme"].name)

    def test_several(self) -> None:
        """An account in the folder has a name, even if it is the only one."""
        self.write("acme.conf")
        folder = {"ACCOUNTS_DIR": str(self.folder)}
        found = [read_settings(ONE | more).has_named_accounts for more in ({}, folder)]
        self.assertEqual([False, True], found)

    def test_links(self) -> None:
        """Links are followed, as Kubernetes mounts a Secret."""
        data = self.folder / "..2026"
        data.mkdir()
        (data / "acme.conf").write_text(f"UPSTREAM_API_TOKEN={CANARY}\n")
        (self.folder / "..data").symlink_to("..2026")
        (self.folder / "acme.conf").symlink_to("..data/acme.conf")
        self.assertEqual(["acme"], list(self.accounts(UPSTREAM_API_URL=URL)))

    def test_environment(self) -> None:
        """A setting that a file omits or leaves empty comes from the environment."""
        token, url = f"UPSTREAM_API_TOKEN={CANARY}", "http://beta.example:1"
        self.write("acme.conf", token, "HTTP_TIMEOUT=5s", "UPSTREAM_API_URL=")
        self.write("beta.conf", f"UPSTREAM_API_URL={url}")
        of_all = {"UPSTREAM_API_TOKEN": OTHER, "HTTP_TIMEOUT": "7s"}
        found = self.accounts(UPSTREAM_API_URL=URL, **of_all)
        for name, own, seconds, key in (
            ("acme", URL, 5.0, (URL, CANARY)),
            ("beta", url, 7.0, (url, OTHER)),
        ):
            account = found[name]
            known = account.upstream_api_url, account.http_timeout
            self.assertEqual((own, seconds), known)
            self.assertEqual(key, account.budget_key())

    def test_token_in_either_form(self) -> None:
        """A token in a file replaces the environment's, in either form."""
        secret, outside = self.folder / "secret", self.folder / "outside"
        secret.write_text(f"{CANARY}\n")
        outside.write_text(OTHER)
        self.write("acme.conf", "UPSTREAM_API_TOKEN_FILE=secret")
        self.write("beta.conf", f"UPSTREAM_API_TOKEN={CANARY}")
        of_file = {"UPSTREAM_API_TOKEN_FILE": str(outside)}
        for of_all in ({"UPSTREAM_API_TOKEN": OTHER}, of_file):
            found = self.accounts(UPSTREAM_API_URL=URL, **of_all)
            for name in ("acme", "beta"):
                self.assertEqual((URL, CANARY), found[name].budget_key(), of_all)
        acme = self.accounts(UPSTREAM_API_URL=URL, UPSTREAM_API_TOKEN=OTHER)["acme"]
        secret.unlink()
        self.assertEqual((URL, str(secret)), acme.budget_key())

    def test_shard(self) -> None:
        """A shard reads only the files of its own accounts."""
        for number in range(8):
            self.write(f"{number}.conf", f"UPSTREAM_API_TOKEN={CANARY}")

        def names(shard: int) -> set[str]:
            return set(self.accounts(UPSTREAM_API_URL=URL, SHARD=f"{shard}/3"))

        shards = [names(number) for number in range(3)]
        self.assertEqual(list("01234567"), sorted(name for s in shards for name in s))
        self.write(f"{min(shards[0])}.conf", "what is this?")
        self.assertEqual(shards[1], names(1))


class RefusedTests(FolderTestCase):
    def test_none(self) -> None:
        """A folder without an account is a retryable error."""
        error = self.refused()
        expected = f"ACCOUNTS_DIR: {self.folder} contains no account file NAME.conf"
        self.assertEqual(([expected], True), (error.problems, error.retryable))
        self.write("müller.conf")
        [problem] = self.problems()
        self.assertIn("a name may contain a-z, A-Z, digits", problem)

    def test_all_at_once(self) -> None:
        """All errors of all files are reported once, with file and line."""
        acme = self.write(
            "acme.conf",
            f"UPSTREAM_API_TOKEN={CANARY}",
            "",
            "HTTP_TIMEOUT=soon",
            "LISTEN_ADDRESS=:1",
            "nbp_c4nary3=x",
            "METRICS_ALLOW=x",
            "COLECTORS=peers",
        )
        beta = self.write("beta.conf", "COLLECTORS=all", "API_RETRY_ATTEMPTS 3")
        gamma = self.write(
            "gamma.conf", "UPSTREAM_API_TOKEN_FILE=gone", f"UPSTREAM_API_URL={CANARY}"
        )
        delta = self.write("delta.conf")
        found = self.problems(METRICS_MAX_AGE="old", LOG_LEVEL="loud")
        gone = quote_value(f"{self.folder}/./gone")
        begin = [problem.partition(" is ")[0].partition(" it ")[0] for problem in found]
        self.assertEqual(
            [
                f"{acme}:4: LISTEN_ADDRESS does not belong to an account: allowed are"
                f" {', '.join(s.name for s in ACCOUNT_SETTINGS)}",
                f"{acme}:5: nbp_…",
                f"{acme}:6: METRICS_ALLOW",
                f"{acme}:7: COLECTORS",
                f"{acme}: UPSTREAM_API_URL",
                f"{acme}:3: HTTP_TIMEOUT: 'soon'",
                "METRICS_MAX_AGE: 'old'",
                f"{beta}:2: API_RETRY_ATTEMPTS: NAME=value",
                f"{delta}: UPSTREAM_API_URL",
                f"{delta}: UPSTREAM_API_TOKEN",
                f"{gamma}:2: UPSTREAM_API_URL: 'nbp_…'",
                f"{gamma}:1: UPSTREAM_API_TOKEN_FILE: {gone}",
                "LOG_LEVEL: 'loud'",
            ],
            begin,
        )
        self.assertIn("not a setting any more: use COLLECTORS", found[2])
        self.assertIn("not a setting: did you mean COLLECTORS?", found[3])

    def test_paths(self) -> None:
        """Each file in an account's file is named with its whole path."""
        for setting in ACCOUNT_SETTINGS:
            is_file = setting.name.endswith("_FILE")
            self.assertEqual(is_file, setting.is_path, setting.name)

    def test_secrets(self) -> None:
        """Secrets are hidden from eight characters on."""
        for token, hidden in (("8letters", {"8letters"}), ("7letter", set())):
            self.assertEqual(hidden, secrets_of({"UPSTREAM_API_TOKEN": token}))

    def test_both_tokens(self) -> None:
        """A file may contain one of the two forms of a token."""
        (self.folder / "secret").write_text(CANARY)
        file, text = "UPSTREAM_API_TOKEN_FILE", "UPSTREAM_API_TOKEN"
        path = self.write("acme.conf", f"{file}=secret", f"{text}={CANARY}")
        both = f"{path}:1: {text} and {file} are both set: set only one of them"
        self.assertEqual([both], self.problems(UPSTREAM_API_URL=URL))

    def test_unreadable(self) -> None:
        """A broken link is a retryable error; a file that is not text is not."""
        path, target = self.folder / "acme.conf", self.folder / "target"
        path.symlink_to("target")
        for words, retryable in (
            ("No such file or directory", True),
            ("the file is not UTF-8 text: save it as UTF-8", False),
        ):
            error = self.refused(UPSTREAM_API_URL=URL)
            expected = [f"{path}: {words}"], retryable
            self.assertEqual(expected, (error.problems, error.retryable))
            target.write_bytes(b"\xff")

    def test_limits_that_differ(self) -> None:
        """Accounts with one token state their limit once, or the same limit."""
        self.write("a.conf", "UPSTREAM_RATE_LIMIT=6/500")
        self.write("b.conf", "UPSTREAM_RATE_LIMIT=6/500")
        self.write("c.conf")
        self.write("d.conf", "UPSTREAM_RATE_LIMIT=7/500", f"UPSTREAM_API_TOKEN={OTHER}")
        self.assertEqual(4, len(self.accounts(**ONE)))
        self.write("b.conf", "UPSTREAM_RATE_LIMIT=120/500")
        self.write("c.conf", "UPSTREAM_RATE_LIMIT=6/500")
        words = "accounts with the same token have different limits"
        expected = f"UPSTREAM_RATE_LIMIT: {words}: 6/500 (a), 120/500 (b)"
        self.assertEqual([expected], self.problems(**ONE))

    def test_shard_without_accounts(self) -> None:
        """A shard without ACCOUNTS_DIR is an error."""
        expected = ["SHARD is set, but ACCOUNTS_DIR is not: set both"]
        self.assertEqual(expected, self.problems(**ONE, ACCOUNTS_DIR="", SHARD="0/3"))

    def test_relative_to_the_working_directory(self) -> None:
        """A token file in the environment is not relative to an account's file."""
        (self.folder / "secret").write_text(CANARY)
        self.write("acme.conf")
        found = self.problems(UPSTREAM_API_URL=URL, UPSTREAM_API_TOKEN_FILE="secret")
        self.assertIn("UPSTREAM_API_TOKEN_FILE: 'secret' is not allowed", found[0])
        self.assertFalse(os.path.exists("secret"))


class MetricsTests(FolderTestCase):
    """METRICS_DENY with several accounts."""

    def setUp(self) -> None:
        super().setUp()
        token = f"UPSTREAM_API_TOKEN={CANARY}"
        self.write("acme.conf", token, "COLLECTORS=peers")
        self.write("beta.conf", token, "COLLECTORS=groups", "METRICS_DENY='*_info'")
        self.environ = {"UPSTREAM_API_URL": URL}

    def test_of_any_account(self) -> None:
        """A pattern in the environment must fit at least one account."""
        deny = "netbird_api_peer_*,netbird_api_group_info"
        found = self.accounts(**self.environ, METRICS_DENY=deny)
        self.assertEqual(tuple(deny.split(",")), found["acme"].metrics_deny)
        self.assertEqual(("*_info",), found["beta"].metrics_deny)

    def test_of_none(self) -> None:
        """A pattern that fits no account is reported once, with its accounts."""
        none = "netbird_api_users"
        deny, shown = f"netbird_api_*,{none}", quote_value(none, ["netbird_api_users"])
        reported = "matches no metric of an enabled collector (see docs/metrics.md)"
        expected = [f"METRICS_DENY of acme: {shown} {reported}"]
        self.assertEqual(expected, self.problems(**self.environ, METRICS_DENY=deny))

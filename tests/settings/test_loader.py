"""Warnings while settings are loaded."""

import os
from contextlib import chdir
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.loader import load
from tests.authority import Authority, written
from tests.logbook import logbook
from tests.settings.test_options import parsed


class WarningTests(SynchronousTestCase):
    def warned(self, **settings: str) -> list[str]:
        """Return the warnings for these settings and the required ones."""
        options = parsed()
        book = logbook(self)
        required = {"UPSTREAM_API_URL": "https://10.0.0.1"}
        load(options, {**required, **settings})
        return book.lines()

    def test_readable_by_all(self) -> None:
        """Each secret file that all users can read has one warning."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        issued = Authority("persons").issue("exporter")
        settings = {
            "UPSTREAM_CLIENT_CERT_FILE": written(folder, "cert", issued.pem),
            "UPSTREAM_CLIENT_KEY_FILE": written(folder, "key", issued.key),
            "UPSTREAM_API_TOKEN_FILE": written(folder, "token", b"secret"),
            "WEB_BEARER_TOKENS_FILE": written(folder, "web", b"a" * 32),
        }
        secret = sorted(p for name, p in settings.items() if "CERT" not in name)
        for mode, reported in ((0o644, secret), (0o640, [])):
            for path in settings.values():
                Path(path).chmod(mode)
            words = "is readable by every user of this machine"
            expected = [f"warning {path} {words}" for path in reported]
            self.assertEqual(expected, self.warned(**settings))

    def test_readable_configuration(self) -> None:
        """This holds for the configuration file, too."""
        file = Path(self.mktemp())
        file.write_text("UPSTREAM_API_URL=http://10.0.0.1\nUPSTREAM_API_TOKEN=a\n")
        options = parsed("--config", str(file))
        for mode, reported in ((0o644, 1), (0o640, 0)):
            file.chmod(mode)
            book = logbook(self)
            load(options, {})
            self.assertEqual(reported, str(book.lines()).count("is readable by every"))

    def test_no_authorities(self) -> None:
        """An unreadable SSL_CERT_FILE has a warning: no certificate is trusted."""
        for path, shown in (
            ("/nowhere.pem", "'/nowhere.pem'"),
            ("/etc", "'/etc'"),
            ("/" + "x" * 5000, "a value of 5001 characters"),
            ("jkqvxzJKQVXZ", "a value of 12 characters"),
        ):
            self.patch(os, "environ", {**os.environ, "SSL_CERT_FILE": path})
            [line] = self.warned(UPSTREAM_API_TOKEN="secret")
            words = f"warning SSL_CERT_FILE names {shown}, which cannot be read"
            self.assertEqual(words, line)

    def test_environment(self) -> None:
        """Variables of libraries are copied from the file into the environment."""
        file = Path(self.mktemp())
        file.write_text(
            "UPSTREAM_API_TOKEN=secret\nSSL_CERT_FILE=/a\nMINE=file\nPROMETHEUS_X=1\n"
        )
        ours = {"MINE": "ours", "UPSTREAM_API_URL": "http://10.0.0.1"}
        self.patch(os, "environ", dict(ours))
        options = parsed("--config", str(file))
        token = load(options, {}).accounts[""].upstream_api_token
        assert token is not None
        self.assertEqual("secret", token.reveal())
        self.assertEqual({**ours, "SSL_CERT_FILE": "/a"}, os.environ)

        file.write_text("UPSTREAM_API_TOKEN=secret\n")
        load(options, {})
        self.assertEqual(ours, os.environ)

    def test_refused_environment(self) -> None:
        """Settings that are refused leave the environment of the process as it is."""
        file = Path(self.mktemp())
        ours = {"UPSTREAM_API_URL": "http://10.0.0.1", "UPSTREAM_API_TOKEN": "secret"}
        self.patch(os, "environ", dict(ours))
        options = parsed("--config", str(file))
        file.write_text("SSL_CERT_FILE=/a\n")
        load(options, {})
        pipe = Path(self.mktemp()).absolute()
        os.mkfifo(pipe)
        for text, words in (
            ("SSL_CERT_FILE=/b\nHTTP_TIMEOUT=never\n", "HTTP_TIMEOUT: 'never'"),
            ("MINE=file\nUPSTREAM_API_TOKN=x\n", "UPSTREAM_API_TOKN is not a setting"),
            (f"SSL_CERT_FILE={pipe}\n", f"SSL_CERT_FILE: {pipe}: the file is not a"),
        ):
            file.write_text(text)
            with self.assertRaisesRegex(ConfigurationError, words):
                load(options, {}, reload=True)
            self.assertEqual({**ours, "SSL_CERT_FILE": "/a"}, os.environ)

    def test_pipe(self) -> None:
        """The configuration file may be a pipe at the start, but not at a reload."""
        self.patch(os, "environ", {})
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.write(writer, b"UPSTREAM_API_URL=http://10.0.0.1\nUPSTREAM_API_TOKEN=a\n")
        os.close(writer)
        options = parsed("--config", f"/dev/fd/{reader}")
        self.assertEqual([""], [*load(options, {}).accounts])
        words = f"/dev/fd/{reader}: the file is not a regular file"
        with self.assertRaisesRegex(ConfigurationError, words):
            load(options, {}, reload=True)

    def test_file_lines(self) -> None:
        """Names that are no settings and repeated ones have a warning with a line."""
        file = Path(self.mktemp()).absolute()
        names = "HTTPS_PROXY= no_proxy=x SSL_CERT_DIR=/a PYTHONUTF8=1"
        lines = (
            *("UPSTREAM_API_URL=http://10.0.0.1", "UPSTREAM_API_TOKEN=secret"),
            *("LOG_LEVEL=debug", "WEB_CFG=/x", "FOO=1", "LOG_LEVEL=info"),
            *("PROMETHEUS_MULTIPROC_DIR=/x", "LOG_LEVEL=error", "c2VjcmV0Zm9vYmFy="),
            *("nbp_canary=1", *names.split()),
        )
        file.write_text("\n".join(lines))
        file.chmod(0o600)
        self.patch(os, "environ", {})
        options = parsed("--config", str(file))
        book = logbook(self)
        self.assertEqual("error", load(options, {}).log_level)
        end, twice = "is not a setting", "LOG_LEVEL is also set in line"
        self.assertEqual(
            [
                f"warning {file}:4: WEB_CFG {end}: did you mean WEB_CONFIG_FILE?",
                f"warning {file}:5: FOO {end}",
                f"warning {file}:6: {twice} 3: the last one counts",
                f"warning {file}:7: PROMETHEUS_MULTIPROC_DIR {end}",
                f"warning {file}:8: {twice} 6: the last one counts",
                f"warning {file}:9: the name {end}",
                f"warning {file}:10: nbp_… {end}",
                f"warning {file}:14: PYTHONUTF8 {end}",
            ],
            book.lines(),
        )

    def test_empty_file(self) -> None:
        """An empty configuration file lacks settings, which waiting does not mend."""
        file = Path(self.mktemp())
        file.touch(mode=0o600)
        self.patch(os, "environ", {})
        error = self.assertRaises(
            ConfigurationError, load, parsed("--config", str(file)), {}
        )
        self.assertFalse(error.retryable)

    def test_no_proxy(self) -> None:
        """Entries of NO_PROXY that match no host have a warning."""
        proxy = {"UPSTREAM_API_TOKEN": "secret", "HTTPS_PROXY": "http://10.0.0.2:1"}
        end = (
            "matches no host: separate hosts by commas, without blanks, quotes and"
            " http://"
        )
        for environ, entries in (
            ({"NO_PROXY": "10.0.0.9 , .example,[::1]:80,*"}, ()),
            ({"NO_PROXY": "10.0.0.9 .example,b"}, ("a value of 17 characters",)),
            ({"NO_PROXY": "a;b,c|d"}, ("'a;b'", "'c|d'")),
            ({"NO_PROXY": "\"a,b'"}, ("'\"a'", '"b\'"')),
            ({"NO_PROXY": "https://me:canary@a.b"}, ("'https://…@a.b'",)),
            ({"NO_PROXY": "a b", "HTTPS_PROXY": ""}, ("'a b'",)),
        ):
            self.patch(os, "environ", {**proxy, **environ})
            expected = [f"warning NO_PROXY: {entry} {end}" for entry in entries]
            self.assertEqual(expected, self.warned(), environ)

    def test_other_folder(self) -> None:
        """Relative names stay relative to the folder of the start."""
        folder = Path(self.mktemp()).absolute()
        (folder / "accounts").mkdir(parents=True)
        written(folder / "accounts", "acme.conf", b"EVENTS_FILE=events\n")
        written(folder, "token", b"secret")
        written(folder, "thresholds", b"{}")
        file = b"UPSTREAM_API_TOKEN_FILE=token\nEVENTS_CURSOR_FILE=a/c\n"
        written(folder, "config", file)
        ours = {"ACCOUNTS_DIR": "accounts", "THRESHOLDS_FILE": "thresholds"}
        url = {"UPSTREAM_API_URL": "https://10.0.0.1"}
        self.patch(os, "environ", {**ours, **url, "WEB_CONFIG_FILE": "web"})
        with chdir(folder):
            options = parsed("--config", "config")
        found = load(options, {})
        acme = found.accounts["acme"]
        self.assertEqual(folder / "accounts/events", acme.events_file)
        self.assertEqual(folder / "a/c", acme.events_cursor)
        self.assertEqual(folder / "web", found.web_config_file)
        self.assertEqual((*url.values(), "secret"), acme.budget_key())

    def test_misplaced_token(self) -> None:
        """A token in place of a file's name is not repeated."""
        folder = Path(self.mktemp()).absolute()
        (folder / "accounts").mkdir(parents=True)
        secret = "a616cb1c-1a2b-4c3d-9e4f-5a6b7c8d9e0f"
        written(folder / "accounts", "a.conf", f"UPSTREAM_CA_FILE={secret}".encode())
        self.patch(os, "environ", {"ACCOUNTS_DIR": "accounts"})
        names = (
            *("UPSTREAM_API_TOKEN_FILE", "THRESHOLDS_FILE"),
            *("WEB_CONFIG_FILE", "WEB_BEARER_TOKENS_FILE"),
        )
        os.environ |= dict.fromkeys(names, secret)
        with chdir(folder):
            error = self.assertRaises(ConfigurationError, load, parsed(), {})
        for name in names:
            self.assertIn(f"{name}: a value of 36 characters", str(error))
        self.assertNotIn(secret, str(error))

    def test_deleted_folder(self) -> None:
        """The start needs no folder if no name is relative."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        with chdir(folder):
            folder.rmdir()
            self.assertEqual("", parsed().folder)
            relative = {"UPSTREAM_API_URL": "https://x", "UPSTREAM_API_TOKEN": "x" * 20}
            self.patch(os, "environ", {**relative, "EVENTS_FILE": "events"})
            error = self.assertRaises(ConfigurationError, load, parsed(), {})
        self.assertIn("(the folder of the start was deleted)", str(error))

    def test_replaced(self) -> None:
        """The environment's token replaces that of the file, in either form."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        token = written(folder, "token", b"own")
        file = folder / "config"
        file.write_text("UPSTREAM_API_TOKEN=theirs\nHTTPS_PROXY=http://10.0.0.2:1\n")
        url = "https://10.0.0.1"
        ours = {"UPSTREAM_API_TOKEN_FILE": token, "UPSTREAM_API_URL": url}
        self.patch(os, "environ", dict(ours))
        options = parsed("--config", str(file))
        self.assertIsNone(load(options, {}).accounts[""].upstream_api_token)
        file.write_text("HTTPS_PROXY=http://10.0.0.3:1\n")
        self.assertIn("10.0.0.3", str(load(options, {}).accounts[""].proxy_selection))

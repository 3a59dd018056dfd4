"""YAML is read strictly, and each error has its line."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.yaml_document import Section, YamlDocument, join
from api_exporter.settings.errors import ConfigurationError


class DocumentTests(SynchronousTestCase):
    def test_no_yaml(self) -> None:
        """Invalid YAML is reported with its line, without its content."""
        forbidden = "web.yml: the file contains a character that YAML forbids"
        for text, expected in (
            ("a: 1\nb: [1\n", "web.yml:3: "),
            ("a: 1\n b: 2\n", "web.yml:2: "),
            ("a: *secret\n", "web.yml:1: found undefined alias …"),
            ("a: 1\n---\nb: 2\n", "web.yml:2: "),
            ("a: \x01secret", forbidden),
            ("[" * 5000, "web.yml: the file is nested too deeply"),
        ):
            with self.assertRaises(ConfigurationError) as raised:
                YamlDocument("web.yml", text)
            [problem] = raised.exception.problems
            self.assertTrue(problem.startswith(expected), problem)
            self.assertNotIn("secret", problem)

    def test_section(self) -> None:
        """Unknown keys, double keys and keys that are no words are errors."""
        text = "a: 1\nb: 2\na: 3\nc:\n? [x]\n: 4\n$2b$secret: 5\n"
        document = YamlDocument("f", text)
        section = Section(document, document.root, "s", ("a", "c"))
        self.assertEqual(["a"], list(section.found))
        self.assertEqual(
            [
                "f:2: s.b: no such key: allowed are a, c",
                "f:3: s.a: the key occurs twice",
                "f:5: s: a key must be a word",
                "f:7: s.…: no such key: allowed are a, c",
            ],
            document.problems,
        )

    def test_no_mapping(self) -> None:
        """Only a mapping has keys and values; nothing is an empty one."""
        for text, key, *expected in (
            ("- a", "", "f:1: the file: it must be a mapping of keys to values"),
            ("''", "s", "f:1: s: it must be a mapping of keys to values"),
            ("word", "s", "f:1: s: it must be a mapping of keys to values"),
            ("? [x]\n: 4", "", "f:1: the file: a key must be a word"),
            *((text, "") for text in ("", "# a comment\n", "~", "null")),
        ):
            document = YamlDocument("f", text)
            self.assertEqual({}, Section(document, document.root, key, ()).found)
            self.assertEqual(expected, document.problems)

    def test_values(self) -> None:
        """Texts, booleans and lists of texts are read as they are."""
        document = YamlDocument("f", "t: 1\ny: yes\nn: Off\nl: [a, 2]\n")
        found = Section(document, document.root, "", ("t", "y", "n", "l"))
        self.assertEqual("1", found.text("t"))
        self.assertEqual("", found.text("none"))
        for name in ("y", "n", "none"):
            found.check_boolean(name)
        self.assertEqual(["a", "2"], found.texts("l"))
        self.assertEqual([], found.texts("none"))
        self.assertEqual([], document.problems)

    def test_wrong_values(self) -> None:
        """A value of another kind is reported with its full key."""
        document = YamlDocument("f", "s:\n  t: [1]\n  b: maybe\n  l: word\n  m: [x]\n")
        root = Section(document, document.root, "", ("s",))
        found = root.section("s", ("t", "b", "l", "m"))
        self.assertEqual("", found.text("t"))
        found.check_boolean("b")
        self.assertEqual([], found.texts("l"))
        self.assertEqual(["x"], found.texts("m", ("a", "b")))
        self.assertEqual(
            [
                "f:2: s.t: it must be a text",
                "f:3: s.b: it must be true or false",
                "f:4: s.l: it must be a list",
                "f:5: s.m: each must be one of a, b, not 'x'",
            ],
            document.problems,
        )
        self.assertFalse(document.retryable)

    def test_join(self) -> None:
        """A key that is no word is hidden, as it may be a secret."""
        self.assertEqual("a.b_c", join("a", "b_c"))
        self.assertEqual("X-Frame", join("", "X-Frame"))
        self.assertEqual("a.…", join("a", "$2y$10$x"))

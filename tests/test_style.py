"""What a machine can check of `docs/style.md`: sentences, words, links, names."""

import re
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.definitions import SETTINGS
from tests.documents import ROOT, metrics

LONGEST = 25
"""Words of a sentence."""

OURS = re.compile(
    r"(?<!define )(?<!:)\b(?:netbird_api|api_exporter)_[a-z0-9_]+(?![*…\w])"
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SETTING = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")

BANNED = re.compile(
    r"\b(?:whoever|whom|nobody|everybody|is told|are told|front door|"
    r"re-?reads?|looks? again)\b",
    re.IGNORECASE,
)
"""Riddles, and words that have one of the field in their place."""

FREE = {"docs/metrics.md", "CHANGELOG.md"}
"""Made from the code, or of the past, as are news fragments and decisions."""

OTHERS = {
    "API_EXPORTER_VERSION",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IMAGE_BASE",
    "NETBIRD_API_TOKEN",
    "NETBIRD_API_URL",
    "NO_PROXY",
    "PIP_FIND_LINKS",
    "RELEASE_KEY",
    "RELEASE_SECRET_KEY",
    "REQUEST_METHOD",
    "SOURCE_DATE_EPOCH",
    "SSL_CERT_FILE",
}
"""Variables of the environment that are not ours, or of a build."""


def documents() -> list[str]:
    """Paths of all documents, from the root."""
    files = run(
        ["git", "ls-files", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [
        path
        for path in files.stdout.split()
        if path not in FREE and not re.search("newsfragments|docs/decisions", path)
    ]


def prose(text: str) -> str:
    """A document without its blocks of code, tables, headings and comments."""
    text = re.sub(r"^( *)```.*?^\1```", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    lines = []
    for line in text.split("\n"):
        if re.match(r" *(?:[-*]|\d+\.) ", line):
            lines.append("")
        lines.append("" if line.lstrip().startswith(("|", "#")) else line)
    return "\n".join(lines)


def sentences(text: str) -> Iterator[str]:
    """Its sentences; a link, and what stands in backquotes, is one word each."""
    for paragraph in re.split(r"\n\s*\n", prose(text)):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
        plain = re.sub(r"`[^`]*`", "CODE", plain).replace("*", "")
        yield from re.split(r"(?<=[.:;?!])\s+(?=[A-Z0-9<“\"(])|;\s|:\s", plain)


def anchors(path: Path) -> set[str]:
    """What a forge makes of its headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading.lower())).replace(" ", "-")
        for heading in headings
    } | set(re.findall(r'id="([^"]+)"', path.read_text(encoding="utf-8")))


class StyleTests(SynchronousTestCase):
    maxDiff = None

    def test_sentences(self) -> None:
        long = [
            f"{path}: {len(sentence.split())}: {sentence}"
            for path in documents()
            for sentence in sentences((ROOT / path).read_text(encoding="utf-8"))
            if len(sentence.split()) > LONGEST
        ]
        self.assertEqual([], long)

    def test_words(self) -> None:
        banned = [
            f"{path}: {found[0]}: {sentence}"
            for path in documents()
            if path != "docs/style.md"
            for sentence in sentences((ROOT / path).read_text(encoding="utf-8"))
            if (found := BANNED.search(sentence))
        ]
        self.assertEqual([], banned)

    def test_settings(self) -> None:
        """The meanings of settings are plain sentences, too."""
        for setting in SETTINGS:
            for sentence in sentences(setting.meaning):
                self.assertLessEqual(len(sentence.split()), LONGEST, sentence)
                self.assertNotRegex(sentence, BANNED)

    def test_links(self) -> None:
        """No link inside of the repository leads nowhere."""
        dead = []
        for path in documents():
            file = ROOT / path
            for target in LINK.findall(file.read_text(encoding="utf-8")):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                there = (file.parent / name).resolve() if name else file
                if not there.exists() or (
                    anchor and there.suffix == ".md" and anchor not in anchors(there)
                ):
                    dead.append(f"{path}: {target}")
        self.assertEqual([], dead)

    def test_names(self) -> None:
        """Each metric and setting that a document names exists."""
        families = set(re.findall(r"`([a-z_0-9]+)`", metrics()))
        known = {setting.name for setting in SETTINGS} | OTHERS
        unknown = []
        for path in documents():
            text = (ROOT / path).read_text(encoding="utf-8")
            for name in set(OURS.findall(text)):
                base = re.sub(r"_(?:bucket|count|sum)$", "", name)
                if not {name, base} & families:
                    unknown.append(f"{path}: {name}")
            unknown += [
                f"{path}: {name}" for name in set(SETTING.findall(text)) - known
            ]
        self.assertEqual([], sorted(unknown))

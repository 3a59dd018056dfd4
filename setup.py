"""Additions to setup.cfg: the commit and its time, documents, the long description."""

import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

MODULE = "api_exporter/_build.py"

DOC = "api_exporter/doc"

COPIED = (
    "docs/accounts.md",
    "docs/logs.md",
    "docs/metrics.md",
    "docs/reference.md",
    "docs/runbooks.md",
    "docs/security.md",
    "docs/troubleshooting.md",
    "deploy/prometheus/alertmanager.yml",
    "deploy/prometheus/alerts.yml",
    "deploy/prometheus/rules.yml",
)

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Runbooks – api-exporter</title>
</head>
<body>
{body}
</body>
</html>
"""


def head_commit() -> str:
    """Return the commit of this tree, or "unknown"."""
    command = ["sh", "deploy/commit.sh", "hash"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def embed(tree: str) -> None:
    """Write the module for `api_exporter.version`, unless it is there."""
    module = Path(tree, MODULE)
    if Path(MODULE).exists() or not module.parent.is_dir():
        return
    commit = os.environ.get("SOURCE_COMMIT") or head_commit()
    # https://reproducible-builds.org/specs/source-date-epoch/
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    module.write_text(
        '"""Written by the build."""\n\n'
        f'COMMIT = "{commit}"\n'
        f'BUILT = "{now:%Y-%m-%dT%H:%M:%SZ}"\n'
    )


def document(tree: str) -> None:
    """Write the page of runbooks with an anchor for each, and the other documents."""
    from markdown import markdown  # noqa: PLC0415 - others than builds have none

    folder = Path(tree, DOC)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    text = Path("docs/runbooks.md").read_text(encoding="utf-8")
    body = markdown(text, extensions=["tables", "toc"], tab_length=2)
    # The page has no other documents beside it, so their links are removed.
    body = re.sub(r'<a href="(?!#|https?:)[^"]*">(.*?)</a>', r"\1", body)
    page = PAGE.format(body=with_contents(body))
    (folder / "runbooks.html").write_text(page, encoding="utf-8")
    for file in map(Path, COPIED):
        content = file.read_text(encoding="utf-8")
        if file.suffix == ".md":
            content = without_links(content)
        (folder / file.name).write_text(content, encoding="utf-8")


HEADING = re.compile(r'<h2 id="(\w+)">(\w+)</h2>')


def with_contents(body: str) -> str:
    """Add links to the contents, and anchors in all spellings."""
    for tag in ('<nav id="contents">', "</nav>"):
        body = body.replace("<!-- contents -->", tag, 1)
    back = r'<p class="back"><a href="#contents">Contents</a></p>'
    return HEADING.sub(rf'<span id="\2"></span>\n\g<0>\n{back}', body)


def without_links(text: str) -> str:
    """Return a document without links to files that are not installed beside it."""
    beside = "|".join(re.escape(Path(file).name) for file in COPIED)
    link = rf"!?\[([^]]*)\]\((?!#|https?:|(?:{beside})[#)])[^)]*\)"
    return re.sub(link, r"\1", text)


def description() -> str:
    """Return the README with absolute links, for the page of a package index."""
    places = Path("deploy/addresses").read_text(encoding="utf-8")
    forge = re.findall(r"^FORGE=(.*)$", places, re.MULTILINE)[0]
    text = Path("README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{forge}/raw/main/", text)
    return re.sub(r"(\]\()(?!https?:|#)", rf"\1{forge}/blob/main/", text)


class BuildPy(build_py):
    """A build of a wheel, which has its commit; an editable tree has none."""

    def run(self) -> None:
        super().run()
        document("." if self.editable_mode else self.build_lib)
        if not self.editable_mode:
            embed(self.build_lib)


class Sdist(sdist):
    """A build of a source distribution, which has its commit."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        embed(base_dir)


setup(long_description=description(), cmdclass={"build_py": BuildPy, "sdist": Sdist})

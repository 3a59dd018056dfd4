"""The source distribution, built from a clean clone and installed."""

import re
import sys
from pathlib import Path

from checks.acceptance.check import ROOT, Failed, expect, run


def build(folder: Path) -> Path:
    """Return a source distribution that is built of a clean clone."""
    tree = folder / "tree"
    run("git", "clone", "--quiet", ROOT, tree)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, tree)
    [made] = folder.glob("*.tar.gz")
    return made


def source(folder: Path) -> str:
    """Check that a source distribution is whole. It can be installed, its commit
    included. It passes its own fast tests, which find stale generated files. Without a
    network it makes the same wheel twice.
    """
    made = build(folder)
    installed = _install(folder, made)
    run("tar", "--extract", "--file", made, "--directory", folder)
    tree = folder / made.name.removesuffix(".tar.gz")
    units = ("make", "units", f"PYTHON={sys.executable}")
    printed = run(*units, cwd=tree, limit=3600)
    [passed] = re.findall(r"^PASSED .*", printed, re.MULTILINE)
    first, second = (_build_offline(tree, folder / name) for name in ("one", "two"))
    expect("the same wheel twice", True, first.read_bytes() == second.read_bytes())
    return f"{made.name}, {made.stat().st_size // 1024} kB; {installed}; {passed}"


def _build_offline(tree: Path, folder: Path) -> Path:
    """Build a wheel of an unpacked source distribution, with its own environment."""
    offline = ("unshare", "--net", tree / ".venv/bin/python", "-m", "build")
    time = run(tree / "deploy/commit.sh", "time").strip()
    env = {"SOURCE_DATE_EPOCH": time}
    run(*offline, "--wheel", "--no-isolation", "--outdir", folder, tree, env=env)
    [made] = folder.glob("*.whl")
    return made


def _install(folder: Path, made: Path) -> str:
    """Install a file into a new virtual environment. Return the version."""
    commit = run("git", "rev-parse", "--short=12", "HEAD").strip()
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin/pip", "install", "--quiet", made)
    version = run(venv / "bin/api-exporter", "--version", cwd=folder).strip()
    if f" {commit} " not in version:
        raise Failed(f"{version!r} does not tell the commit {commit}")
    if "api-exporter" not in run(venv / "bin/twistd", "--help", cwd=folder):
        raise Failed("twistd does not see the plugin")
    where = "import api_exporter; print(*api_exporter.__path__)"
    package = Path(run(venv / "bin/python", "-c", where, cwd=folder).strip())
    documents = ("accounts", "logs", "metrics", "reference", "security")
    names = ("thresholds.json", "doc/alerts.yml", "doc/runbooks.html")
    for name in (*names, *(f"doc/{document}.md" for document in documents)):
        if not (package / name).exists():
            raise Failed(f"{name} is not there")
    [page] = package.parent.glob("api_exporter-*.dist-info/METADATA")
    relative = re.findall(r"\]\((?!http)[^)]*", page.read_text())
    expect("relative links on an index's page", [], relative)
    if "netbird_api_peers{" not in run(
        venv / "bin/api-exporter", "--demo", "--once", cwd=folder
    ):
        raise Failed("--demo --once prints no peers")
    return version

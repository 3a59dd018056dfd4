"""The packages that a distribution makes of the source, with its own libraries."""

import re
from pathlib import Path

from checks.acceptance.check import ROOT, expect, run
from checks.acceptance.release import build
from checks.acceptance.roots import Root, make_bare

_BUILT = "/built"

_BUILD_LIBRARIES = ("pip", "setuptools", "incremental", "markdown")

# Each program in a root has mounts of its own.
_WITH_PTYS = ("sh", "-ec", 'mount -t devpts devpts /dev/pts; exec "$@"', "sh")

_AS_USER = ("runuser", "--user", "builder", "--", "env", "HOME=/tmp", "LANG=C.UTF-8")


def debian_source(folder: Path) -> str:
    """Build the source package on Debian 13 with its tests, of which none may see a
    library from an index. Install the package, and run what its autopkgtest runs.
    """
    sdist = build(folder)
    root = _root(folder, "lintian")
    run(ROOT / "deploy/debian/source.sh", sdist, root.path / "built")
    [tree] = (root.path / "built").glob("api-exporter-*")
    inside = f"{_BUILT}/{tree.name}"
    root.run("chown", "--recursive", "builder", _BUILT)
    root.apt("build-dep", "--no-install-recommends", inside)
    expect("pip", False, (root.path / "usr/bin/pip").exists())
    package = ("dpkg-buildpackage", "--no-sign", "--build=full")
    printed = root.run(*_WITH_PTYS, *_AS_USER, "env", f"--chdir={inside}", *package)
    [passed] = re.findall(r"^PASSED .*", printed, re.MULTILINE)
    [changes] = (root.path / "built").glob("*.changes")
    linted = root.run(
        *_AS_USER, "lintian", "--fail-on=error,warning", f"{_BUILT}/{changes.name}"
    )
    [made] = (root.path / "built").glob("*.deb")
    root.apt("install", "curl", f"{_BUILT}/{made.name}")
    root.run("sh", f"{inside}/debian/tests/demo")
    version = root.run("api-exporter", "--version").strip()
    return f"{made.name}: {passed}; lintian: {linted.strip() or 'nothing'}; {version}"


def rpm(folder: Path) -> str:
    """Build the package of the spec. Debian has none of rpm's packages to build with,
    so its own libraries stand in for them.
    """
    sdist = build(folder)
    root = _root(folder, "rpm", *(f"python3-{x}" for x in _BUILD_LIBRARIES))
    run("cp", sdist, ROOT / "deploy/rpm/api-exporter.spec", root.path / "built")
    version = sdist.name.removeprefix("api_exporter-").removesuffix(".tar.gz")
    names = {"_sourcedir": _BUILT, "_topdir": "/top", "upstream": version}
    # Distributions of rpm compile what is installed.
    names["__os_install_post"] = "python3 -m compileall -q %{buildroot}/usr/lib"
    defined = [f"--define={name} {value}" for name, value in names.items()]
    # Without it, Debian's pip installs below /usr/local.
    layout = ("env", "DEB_PYTHON_INSTALL_LAYOUT=deb")
    spec = f"{_BUILT}/api-exporter.spec"
    root.run(*layout, "rpmbuild", "-bb", "--nodeps", *defined, spec)
    [made] = (root.path / "top/RPMS/noarch").glob("*.rpm")
    listed = root.run("rpm", "-qpl", f"/top/RPMS/noarch/{made.name}").splitlines()
    for name in (
        "/etc/api-exporter/config",
        "/usr/bin/api-exporter",
        "/usr/lib/systemd/system/api-exporter.service",
        "/usr/share/man/man1/api-exporter.1.gz",
    ):
        expect(name, True, name in listed)
    return f"{made.name}: {len(listed)} files"


def _root(folder: Path, *packages: str) -> Root:
    root = make_bare(folder, 13)
    root.apt("install", "--no-install-recommends", "build-essential", *packages)
    root.run("useradd", "builder")
    (root.path / "built").mkdir()
    return root

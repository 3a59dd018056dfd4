"""An image behind TLS and authentication, with a mounted Kubernetes Secret."""

import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from acceptance.check import Failed
from acceptance.engine import Engine, Running
from acceptance.scraping import (
    ASKED,
    CERTIFICATES,
    CERTIFIED,
    KNOWN,
    PATIENCE,
    Prometheus,
    keys,
)
from tests.access.certificates import Authority
from tests.integration.programs import free_port, get

MOUNTED = "/run/secrets/api-exporter-web"

USER = 65532

PROBES = {
    "livenessProbe": ["api-exporter", "--health"],
    "readinessProbe": ["api-exporter", "--health", "/ready"],
}
"""The probes of the Deployment, which run inside the container."""

DOORS = {
    "WEB_CONFIG_FILE": f"{MOUNTED}/web.yml",
    "WEB_BEARER_TOKENS_FILE": f"{MOUNTED}/tokens",
}


def guarded(engine: Engine, image: str, folder: Path) -> list[str]:
    """Check authentication, health checks and a new certificate. Only a password, token
    or client certificate gives access. The health check and the probes need none of
    them. A new certificate in the Secret needs no restart.
    """
    secret = _Secret(folder / "secret")
    prometheus = folder / "prometheus"
    prometheus.mkdir()
    authority = Authority()

    def renewed() -> None:
        secret.replaced(lambda new: keys(authority, new, prometheus), ASKED)

    renewed()
    mounts = {secret.folder: MOUNTED}
    demo = {"DEMO_PEERS": "50"}
    with engine.started(
        image, "--demo", env={**demo, **DOORS}, mounts=mounts
    ) as running:
        seen = [_let_in(running, prometheus, KNOWN), _healthy(running)]
        seen.append(_rotated(running, renewed))
        running.stop()
    secret.replaced(lambda new: keys(authority, new, prometheus), CERTIFIED)
    web = {"WEB_CONFIG_FILE": DOORS["WEB_CONFIG_FILE"]}
    with engine.started(image, "--demo", env={**demo, **web}, mounts=mounts) as running:
        seen += [_let_in(running, prometheus, CERTIFICATES), _healthy(running)]
        running.stop()
    return seen


class _Secret:
    """A folder with the layout of a Secret: links into a replaceable folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._times = 0
        folder.mkdir()

    def replaced(self, fill: Callable[[Path], None], web: str) -> None:
        """Replace the files. The exporter's group may read them."""
        self._times += 1
        new = self.folder / f"..{self._times}"
        new.mkdir()
        fill(new)
        (new / "web.yml").write_text(web)
        for file in new.iterdir():
            os.chown(file, 0, USER)
            file.chmod(0o440)
            link = self.folder / file.name
            if not link.is_symlink():
                link.symlink_to(f"..data/{file.name}")
        (self.folder / "..new").symlink_to(new.name)
        (self.folder / "..new").rename(self.folder / "..data")


def _let_in(running: Running, folder: Path, jobs: dict[str, str]) -> str:
    target, address = f"127.0.0.1:{running.port}", f"127.0.0.1:{free_port()}"
    return Prometheus(folder, target, address, _get).let_in(jobs)


def _get(where: str, path: str) -> str:
    status, _, body = get(f"http://{where}{path}")
    if status != 200:
        raise Failed(f"{where}{path}: {status}")
    return body.decode()


def _healthy(running: Running) -> str:
    """Return the output of the probes, after the image's health check has succeeded."""
    running.healthy()
    said = [running.engine.podman("exec", running.name, *PROBES[x]) for x in PROBES]
    return f"healthy; {'; '.join(line.strip() for line in said)}"


def _rotated(running: Running, renewed: Callable[[], None]) -> str:
    """Check that a new certificate in the Secret is served."""
    where = ("127.0.0.1", running.port)
    before = ssl.get_server_certificate(where)
    renewed()
    end = time.monotonic() + PATIENCE
    while ssl.get_server_certificate(where) == before:
        if time.monotonic() > end:
            raise Failed(f"the certificate of before is shown\n{running.logs()}")
        time.sleep(0.2)
    return "a new certificate is shown without a restart"

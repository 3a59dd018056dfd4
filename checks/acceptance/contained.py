"""An image behind TLS and authentication, with a mounted Kubernetes Secret."""

import os
import ssl
from collections.abc import Callable
from pathlib import Path

from checks.acceptance.check import Failed, until
from checks.acceptance.engine import Engine, Running
from checks.acceptance.scraping import (
    CERTIFICATE_JOBS,
    CERTIFICATE_WEB,
    PASSWORD_JOBS,
    PASSWORD_WEB,
    Prometheus,
    write_keys,
)
from tests.authority import Authority
from tests.integration.programs import free_port, get

MOUNTED = "/run/secrets/api-exporter-web"

USER = 65532

PROBES = {
    "livenessProbe": ["api-exporter", "--health"],
    "readinessProbe": ["api-exporter", "--health", "/ready"],
}
"""The probes of the Deployment, which run inside the container."""

ACCESS = {
    "WEB_CONFIG_FILE": f"{MOUNTED}/web.yml",
    "WEB_BEARER_TOKENS_FILE": f"{MOUNTED}/tokens",
}


def check_access(engine: Engine, image: str, folder: Path) -> list[str]:
    """Check authentication, health checks and a new certificate. Only a password, token
    or client certificate gives access. The health check and the probes need none of
    them. A new certificate in the Secret needs no restart.
    """
    secret = _Secret(folder / "secret")
    prometheus = folder / "prometheus"
    prometheus.mkdir()
    authority = Authority()

    def renew() -> None:
        secret.replace(lambda new: write_keys(authority, new, prometheus), PASSWORD_WEB)

    renew()
    mounts = {secret.folder: MOUNTED}
    demo = {"DEMO_PEERS": "50"}
    with engine.started(
        image, "--demo", env={**demo, **ACCESS}, mounts=mounts
    ) as running:
        seen = [_scrape(running, prometheus, PASSWORD_JOBS), _check_health(running)]
        seen.append(_check_renewal(running, renew))
        running.stop()
    secret.replace(lambda new: write_keys(authority, new, prometheus), CERTIFICATE_WEB)
    web = {"WEB_CONFIG_FILE": ACCESS["WEB_CONFIG_FILE"]}
    with engine.started(image, "--demo", env={**demo, **web}, mounts=mounts) as running:
        seen += [_scrape(running, prometheus, CERTIFICATE_JOBS), _check_health(running)]
        running.stop()
    return seen


class _Secret:
    """A folder with the layout of a Secret: links into a replaceable folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._times = 0
        folder.mkdir()

    def replace(self, fill: Callable[[Path], None], web: str) -> None:
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


def _scrape(running: Running, folder: Path, jobs: dict[str, str]) -> str:
    target, address = f"127.0.0.1:{running.port}", f"127.0.0.1:{free_port()}"
    return Prometheus(folder, target, address, _get).check_access(jobs)


def _get(where: str, path: str) -> str:
    status, _, body = get(f"http://{where}{path}")
    if status != 200:
        raise Failed(f"{where}{path}: {status}")
    return body.decode()


def _check_health(running: Running) -> str:
    """Return the output of the probes, after the image's health check has succeeded."""
    running.healthy()
    said = [running.engine.podman("exec", running.name, *PROBES[x]) for x in PROBES]
    return f"healthy; {'; '.join(line.strip() for line in said)}"


def _check_renewal(running: Running, renew: Callable[[], None]) -> str:
    """Check that a new certificate in the Secret is served."""
    where = ("127.0.0.1", running.port)
    before = ssl.get_server_certificate(where)
    renew()
    until(lambda: ssl.get_server_certificate(where) != before, running.logs)
    return "a new certificate is shown without a restart"

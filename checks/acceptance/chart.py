"""Run what the Helm chart renders: the settings, arguments and files of its pod."""

import base64
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from api_exporter.demo.server import DEMO_TOKEN
from checks.acceptance import simulated
from checks.acceptance.check import Failed, run, running, until
from checks.acceptance.helm import examples, rendered
from tests.authority import Authority
from tests.integration.programs import environment, free_port, get

PROGRAM = Path(sys.executable).with_name("api-exporter")

_AUTHORITY = Authority("authority")
_ISSUED = _AUTHORITY.issue("api-exporter.example.org")

_TLS = {"tls.crt": _ISSUED.pem, "tls.key": _ISSUED.key, "ca.crt": _AUTHORITY.pem}
_WEB = b"tls_server_config: {cert_file: server.pem, key_file: server.key}\n"
_ACCOUNT = b"UPSTREAM_API_TOKEN=" + DEMO_TOKEN.encode()

STORED: Mapping[str, Mapping[str, bytes]] = {
    "acme": {"api-token": DEMO_TOKEN.encode(), "token": DEMO_TOKEN.encode()},
    "api-exporter-tls": _TLS,
    "api-exporter-tokens": {"web-tokens": b"prometheus 012345678901234567890123\n"},
    "api-exporter-web": {
        "web.yml": _WEB,
        "server.pem": _ISSUED.pem,
        "server.key": _ISSUED.key,
    },
    "beta": {"token": DEMO_TOKEN.encode()},
    "company-ca": {"ca-bundle.pem": _AUTHORITY.pem},
    "customers": {"delta": b"UPSTREAM_API_TOKEN_FILE=delta.token\n"},
    "delta": {"token": DEMO_TOKEN.encode()},
    "exporter-certificate": _TLS,
    "gamma": {"gamma.conf": _ACCOUNT, "token": DEMO_TOKEN.encode()},
    "metrics-api-exporter": {"token": DEMO_TOKEN.encode()},
    "more-customers": {"epsilon.conf": _ACCOUNT, "zeta.conf": _ACCOUNT},
    "netbird": {"api-token": DEMO_TOKEN.encode()},
    "shared-token": {"token": DEMO_TOKEN.encode()},
}
"""The Secrets and ConfigMaps that the examples require."""

EXAMPLE_TOKEN = b"nbp_not_a_token_at_all"
"""The token in the values of the examples."""

UPSTREAM = re.compile(
    r"https://(?:[a-z.-]+\.example|netbird\.example|api\.netbird\.io)(?::\d+)?"
)


def check_examples(folder: Path) -> str:
    """Check that each example's pod reads a simulated API and its probes succeed."""
    seen = []
    with simulated.upstream(folder, 20) as port:
        upstream = f"http://127.0.0.1:{port}"
        for path in examples():
            objects = rendered("--values", path)
            name = path.stem.removesuffix("-values")
            pod = _Pod(objects, folder / name, upstream)
            accounts: list[str] = []
            for shard in range(pod.replicas):
                accounts += pod.list_accounts(shard)
                pod.probe(shard)
            if len(set(accounts)) != len(accounts):
                raise Failed(f"{name}: an account is kept twice: {accounts}")
            listed = f", accounts {' '.join(sorted(accounts))}" if accounts else ""
            seen.append(f"{name}: {pod.replicas} × read and probed{listed}")
    return "\n".join(seen)


class _Pod:
    """A pod's first container, with its files below a folder."""

    def __init__(self, objects: list[Any], folder: Path, upstream: str) -> None:
        [work] = [o for o in objects if o["kind"] in {"Deployment", "StatefulSet"}]
        self.replicas: int = work["spec"]["replicas"]
        self._spec = work["spec"]["template"]["spec"]
        self._container = self._spec["containers"][0]
        self._stored = {**STORED, **_made(objects)}
        self._folder, self._upstream = folder, upstream
        for mount in self._container.get("volumeMounts", []):
            self._mount(mount)

    def _mount(self, mount: Mapping[str, Any]) -> None:
        [volume] = [v for v in self._spec["volumes"] if v["name"] == mount["name"]]
        place = self._folder / mount["mountPath"].lstrip("/")
        place.mkdir(parents=True)
        sources = volume.get("projected", {}).get("sources", [volume])
        for source in sources:
            for kind in source.keys() & {"secret", "configMap"}:
                one = source[kind]
                found = self._stored[one.get("secretName") or one["name"]]
                items = one.get("items") or [{"key": k, "path": k} for k in found]
                for item in items:
                    text = found[item["key"]].replace(
                        EXAMPLE_TOKEN, DEMO_TOKEN.encode()
                    )
                    (place / item["path"]).write_bytes(self._with_upstream(text))

    def _with_upstream(self, text: bytes) -> bytes:
        try:
            return UPSTREAM.sub(self._upstream, text.decode()).encode()
        except UnicodeDecodeError:
            return text

    def _environ(self, shard: int, port: int) -> dict[str, str]:
        found = {}
        for one in self._container["env"]:
            value = one.get("value", "")
            for mount in self._container.get("volumeMounts", []):
                value = value.replace(
                    mount["mountPath"] + "/", f"{self._folder}{mount['mountPath']}/"
                )
                if value == mount["mountPath"]:
                    value = f"{self._folder}{value}"
            found[one["name"]] = UPSTREAM.sub(self._upstream, value)
        found["LISTEN_ADDRESS"] = f"127.0.0.1:{port}"
        if "SHARD" in found:
            found["SHARD"] = found["SHARD"].replace("auto", str(shard))
        return environment(**found)

    def list_accounts(self, shard: int) -> list[str]:
        """Return the accounts that `--check` lists. Raise Failed if it fails."""
        environ = self._environ(shard, free_port())
        said = run(PROGRAM, "--check", *self._container.get("args", []), env=environ)
        return re.findall(r"^account: (\S+)$", said, re.MULTILINE)

    def probe(self, shard: int) -> None:
        """Run it until both probes succeed."""
        port = free_port()
        environ = self._environ(shard, port)
        log = self._folder / f"log-{shard}"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = (PROGRAM, *self._container.get("args", []))
        with running(*command, log=log, env=environ):
            for kind in ("livenessProbe", "readinessProbe"):
                probe = self._container[kind]
                until(partial(self._succeeds, probe, port, environ), log.read_text)

    def _succeeds(
        self, probe: Mapping[str, Any], port: int, environ: Mapping[str, str]
    ) -> bool:
        if "httpGet" in probe:
            return get(f"http://127.0.0.1:{port}{probe['httpGet']['path']}")[0] == 200
        name, *more = probe["exec"]["command"]
        assert name == PROGRAM.name, shlex.join(probe["exec"]["command"])
        done = subprocess.run(
            [PROGRAM, *more], check=False, env=environ, capture_output=True
        )
        return done.returncode == 0


def _made(objects: list[Any]) -> dict[str, dict[str, bytes]]:
    """Return the chart's own objects; Secret and ConfigMap of one name are merged."""
    found: dict[str, dict[str, bytes]] = {}
    for thing in objects:
        name = thing["metadata"]["name"]
        for key, value in thing.get("data", {}).items():
            secret = thing["kind"] == "Secret"
            content = base64.b64decode(value) if secret else value.encode()
            found.setdefault(name, {})[key] = content
    return found

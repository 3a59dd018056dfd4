"""Image, Compose and Kubernetes files, as far as they can be judged by reading."""

import re
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from api_exporter._version import __version__
from api_exporter.settings.definitions import SETTINGS
from tests.chart import DASHBOARDS, PROMETHEUS_RULE
from tests.deploy.programs import DEPLOY
from tests.deploy.yaml_files import documents
from tests.integration.programs import ROOT

CONTAINER = DEPLOY / "container"
KUBERNETES = DEPLOY / "kubernetes"


class ContainerTests(SynchronousTestCase):
    def test_containerfiles(self) -> None:
        """Both images run as a numeric user, have a health check and labels, and copy
        what exists and is not ignored.
        """
        for name in ("Containerfile", "Containerfile.static"):
            text = (CONTAINER / name).read_text()
            for pattern in (
                r"^USER [1-9]\d*:[1-9]\d*$",
                r"^HEALTHCHECK .* CMD \[.*\]$",
                r"^LABEL org\.opencontainers\.image\.",
            ):
                self.assertRegex(text, re.compile(pattern, re.MULTILINE), name)
        text = (CONTAINER / "Containerfile").read_text()
        self.assertEqual(["$BUILDER AS build", "$BASE"], re.findall("FROM (.*)", text))
        ignored = (CONTAINER / "Containerfile.dockerignore").read_text().splitlines()
        for name in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE):
            self.assertTrue((ROOT / name).exists(), name)
            self.assertNotIn(name.partition("/")[0], ignored)

    def test_compose(self) -> None:
        """Compose mounts and builds what exists, and publishes to this machine only."""
        [compose] = documents(CONTAINER / "compose.yml")
        services = compose["services"]
        self.assertEqual({"api-exporter", "prometheus", "grafana"}, set(services))
        context = CONTAINER / services["api-exporter"]["build"]["context"]
        file = context / services["api-exporter"]["build"]["dockerfile"]
        self.assertTrue(file.samefile(CONTAINER / "Containerfile"))
        for service in services.values():
            for volume in service.get("volumes", []):
                source, _, mode = volume.split(":")
                self.assertTrue((CONTAINER / source).is_dir(), volume)
                self.assertEqual("ro", mode)
            for port in service["ports"]:
                self.assertTrue(port.startswith("127.0.0.1:"), port)
        [prometheus] = documents(DEPLOY / "prometheus/prometheus.yml")
        [job] = prometheus["scrape_configs"]
        [[target]] = [config["targets"] for config in job["static_configs"]]
        self.assertIn(target.partition(":")[0], services)


class KubernetesTests(SynchronousTestCase):
    def setUp(self) -> None:
        [self.base] = documents(KUBERNETES / "kustomization.yaml")
        self.objects = self.listed(KUBERNETES)
        self.objects |= self.listed(KUBERNETES / "servicemonitor")
        self.objects |= self.listed(KUBERNETES / "prometheusrule")

    def listed(self, directory: Path) -> dict[str, Any]:
        """The objects that a directory lists: all that are in it."""
        [kustomization] = documents(directory / "kustomization.yaml")
        files = {path.name for path in directory.iterdir() if path.is_file()}
        listed = kustomization["resources"]
        self.assertEqual(files, {*listed, "kustomization.yaml"})
        return {
            found["kind"]: found
            for name in listed
            for found in documents(directory / name)
        }

    def test_complete(self) -> None:
        """The base has its objects, and the ServiceMonitor is a component."""
        self.assertEqual(
            {"Deployment", "Service", "NetworkPolicy"}, set(self.listed(KUBERNETES))
        )
        [component] = documents(KUBERNETES / "servicemonitor/kustomization.yaml")
        self.assertEqual("Component", component["kind"])
        self.assertEqual(
            {
                "app.kubernetes.io/name": "api-exporter",
                "release": "kube-prometheus-stack",
            },
            self.objects["ServiceMonitor"]["metadata"]["labels"],
        )

    def test_rules(self) -> None:
        """The rules are `rules.yml` and `alerts.yml`, for the operator's selector."""
        found = documents(PROMETHEUS_RULE)
        names = [one["metadata"]["name"] for one in found]
        self.assertEqual(["api-exporter-rules", "api-exporter-alerts"], names)
        for one, name in zip(found, ("rules", "alerts"), strict=True):
            [source] = documents(DEPLOY / f"prometheus/{name}.yml")
            self.assertEqual(source, one["spec"])
            monitor = self.objects["ServiceMonitor"]["metadata"]["labels"]
            self.assertEqual(monitor, one["metadata"]["labels"])

    def test_dashboards(self) -> None:
        """Each dashboard is a ConfigMap with the label that the sidecar looks for."""
        folder = DEPLOY / "grafana/dashboards"
        [component] = documents(folder / "kustomization.yaml")
        files = [
            file for one in component["configMapGenerator"] for file in one["files"]
        ]
        self.assertEqual(
            [f"netbird-{path.name}={path.name}" for path in DASHBOARDS], files
        )
        options = component["generatorOptions"]
        self.assertEqual("1", options["labels"]["grafana_dashboard"])

    def test_version(self) -> None:
        """Every object has the recommended labels, and the image a tag: our version."""
        version = __version__.public()
        [image] = self.base["images"]
        self.assertEqual(("api-exporter", version), (image["name"], image["newTag"]))
        [labels] = self.base["labels"]
        self.assertTrue(labels["includeTemplates"])
        self.assertEqual(
            {"component", "instance", "managed-by", "part-of", "version"},
            {name.removeprefix("app.kubernetes.io/") for name in labels["pairs"]},
        )
        self.assertEqual(version, labels["pairs"]["app.kubernetes.io/version"])
        for found in self.objects.values():
            name = found["metadata"]["labels"]["app.kubernetes.io/name"]
            self.assertEqual("api-exporter", name)

    def test_one_pod(self) -> None:
        """An update ends the old pod first: two would share one token's budget."""
        spec = self.objects["Deployment"]["spec"]
        self.assertEqual(
            (1, {"type": "Recreate"}), (spec["replicas"], spec["strategy"])
        )

    def test_deployment(self) -> None:
        """It may and writes nothing, is probed, and reads its token from a file."""
        pod = self.objects["Deployment"]["spec"]["template"]["spec"]
        self.assertFalse(pod["automountServiceAccountToken"])
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        [container] = pod["containers"]
        self.assertEqual(
            {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            container["securityContext"],
        )
        probes = {
            container[probe]["httpGet"]["path"]
            for probe in ("livenessProbe", "readinessProbe")
        }
        self.assertEqual({"/health", "/ready"}, probes)
        [mount], [volume] = container["volumeMounts"], pod["volumes"]
        self.assertEqual(mount["name"], volume["name"])
        self.assertIn("secret", volume)
        [token] = container["env"]
        self.assertTrue(token["value"].startswith(mount["mountPath"] + "/"))
        [configured] = self.base["configMapGenerator"]
        self.assertEqual(
            container["envFrom"], [{"configMapRef": {"name": configured["name"]}}]
        )
        known = {setting.name for setting in SETTINGS}
        given = {literal.partition("=")[0] for literal in configured["literals"]}
        self.assertLessEqual(given, known)

    def test_network_policy(self) -> None:
        """Scrapes come from a namespace and the private ranges alone; a component adds
        NetBird's own range and the IPv6 addresses that are private.
        """
        [ingress] = self.objects["NetworkPolicy"]["spec"]["ingress"]
        [namespace, *ranges] = ingress["from"]
        self.assertEqual(
            {"kubernetes.io/metadata.name": "monitoring"},
            namespace["namespaceSelector"]["matchLabels"],
        )
        self.assertEqual(
            ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
            [source["ipBlock"]["cidr"] for source in ranges],
        )
        [component] = documents(KUBERNETES / "netbird/kustomization.yaml")
        [patch] = component["patches"]
        self.assertEqual("NetworkPolicy", patch["target"]["kind"])
        for word in ("/spec/ingress/0/from/-", "100.64.0.0/10", "fc00::/7"):
            self.assertIn(word, patch["patch"])

    def test_ports(self) -> None:
        """All name the container's port."""
        container = self.objects["Deployment"]["spec"]["template"]["spec"]["containers"]
        [port] = container[0]["ports"]
        self.assertEqual("http", port["name"])
        [served] = self.objects["Service"]["spec"]["ports"]
        [scraped] = self.objects["ServiceMonitor"]["spec"]["endpoints"]
        [allowed] = self.objects["NetworkPolicy"]["spec"]["ingress"][0]["ports"]
        names = {served["targetPort"], scraped["port"], allowed["port"]}
        self.assertEqual({"http"}, names | {served["name"]})

    def test_selectors(self) -> None:
        """The selectors find the pods, and the monitor's finds the service."""
        spec = {kind: found["spec"] for kind, found in self.objects.items()}
        pods = spec["Deployment"]["template"]["metadata"]["labels"]
        service = self.objects["Service"]["metadata"]["labels"]
        for selector, labels in (
            (spec["Deployment"]["selector"]["matchLabels"], pods),
            (spec["Service"]["selector"], pods),
            (spec["NetworkPolicy"]["podSelector"]["matchLabels"], pods),
            (spec["ServiceMonitor"]["selector"]["matchLabels"], service),
        ):
            self.assertTrue(selector)
            self.assertLessEqual(selector.items(), labels.items())
        self.assertEqual("api-exporter", service[spec["ServiceMonitor"]["jobLabel"]])

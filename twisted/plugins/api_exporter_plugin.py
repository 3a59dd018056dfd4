"""The plugin for `twistd`: the name of the program and of its module."""

from twisted.application.service import ServiceMaker

api_exporter = ServiceMaker(
    "api-exporter",
    "api_exporter.cli",
    "Prometheus exporter for the management API of NetBird networks.",
    "api-exporter",
)

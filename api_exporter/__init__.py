"""A Prometheus exporter for the management API of NetBird networks."""

from api_exporter._version import __version__

__all__ = ["__version__"]

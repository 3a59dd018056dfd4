"""A Prometheus exporter for the management API of NetBird networks.

Its version is in `api_exporter.version`: the first import of the package is quick.
"""

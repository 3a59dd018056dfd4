"""A Prometheus exporter for the management API of NetBird networks.

Its version is in `api_exporter.version`: this module stays quick to import.
"""

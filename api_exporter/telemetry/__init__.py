"""Metrics of the exporter: refreshes, requests, peers over time, the process."""

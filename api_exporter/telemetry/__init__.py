"""Metrics of the exporter: refreshes, requests, findings, logs, the process."""

"""Paths, bodies and records of the NetBird API, and the inventory of one moment.

Pure: nothing here sends a request or makes a metric.
"""

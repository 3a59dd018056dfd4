"""Collectors: pure functions from an inventory to metric families.

They use no text format, no HTTP and no clock.
"""

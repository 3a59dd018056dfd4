"""Collectors: pure functions from an inventory to metric families.

They use no HTTP and no clock.
"""

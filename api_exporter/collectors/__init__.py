"""Collectors: pure functions from an inventory to metric families.

They use no HTTP and no clock. The rows of families stand in `subjects`.
"""

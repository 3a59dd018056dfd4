"""Joins of lists that were read at different times, while somebody works in NetBird."""

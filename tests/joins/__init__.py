"""Joins of lists that were read at different times, during changes in NetBird."""

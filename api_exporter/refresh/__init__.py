"""Keeps resources fresh, gently: when to ask, one refresh, what is said about it.

It is handed `fetch` and knows nothing of HTTP.
"""

"""Conclusions from several records together."""

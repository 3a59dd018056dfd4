"""Conclusions from several records together, which several subjects need."""

"""Conclusions from several records together; collectors and findings use them."""

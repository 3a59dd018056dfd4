"""A simulated company with many incidents each week."""

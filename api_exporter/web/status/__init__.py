"""`/`: is it working, and if not, why? Pure but for the page itself."""

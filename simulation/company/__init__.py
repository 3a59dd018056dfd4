"""A simulated company, in which much goes wrong in a week."""

"""What follows from several records together."""

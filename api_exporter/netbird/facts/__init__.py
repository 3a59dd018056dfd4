"""What follows from several records together. Who publishes it is not known here."""

"""`/sd`: the peers as targets, for Prometheus' HTTP service discovery."""

"""`/`: the state of the exporter and the network. All but `pages` is pure."""

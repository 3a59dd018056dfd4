"""`/`: the state of the exporter and the network. All but `page` is pure."""

"""Days of the whole program but its sockets, all of them made of one number."""

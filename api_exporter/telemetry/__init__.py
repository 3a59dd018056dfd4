"""What is known of ourselves: refreshes, requests, peers over time, the process."""

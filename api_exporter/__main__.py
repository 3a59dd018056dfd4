"""`python -m api_exporter` is the `api-exporter` command."""

from api_exporter.entry import main

main()

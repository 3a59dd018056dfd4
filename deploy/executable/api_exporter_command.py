"""What the one-file executable starts with."""

from api_exporter.cli import main

main()

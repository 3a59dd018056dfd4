"""What the one-file executable starts with."""

from api_exporter.entry import main

main()

"""Makers of documents, of alerts and of the chart's texts; checks of the style."""

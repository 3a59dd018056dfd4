"""The dashboards as a program: `python -m deploy.grafana` writes their JSON."""

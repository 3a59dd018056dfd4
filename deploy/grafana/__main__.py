"""Write the dashboards into `deploy/grafana/dashboards`."""

from deploy.grafana.boards import FILES

if __name__ == "__main__":
    for path, text in FILES.items():
        path.write_text(text(), encoding="utf-8")

module otel_collector

go 1.25.0

require (
	github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver v0.163.0
	go.opentelemetry.io/collector/confmap/provider/fileprovider v1.69.0
	go.opentelemetry.io/collector/exporter/debugexporter v0.163.0
	go.opentelemetry.io/collector/otelcol v0.163.0
)

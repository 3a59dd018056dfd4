{{/* Volumes, and where each is mounted: a list in which both stand. */}}

{{- define "api-exporter.volumes" -}}
{{- $full := include "api-exporter.fullname" . -}}
{{- $mode := 288 -}}{{/* 0440 */}}
{{- $volumes := list -}}
{{- with include "api-exporter.tokenSecret" . -}}
{{- $own := not (or $.Values.upstream.token.existingSecret (empty $.Values.upstream.token.value)) -}}
{{- $items := list (dict "key" ($own | ternary "token" $.Values.upstream.token.key) "path" "token") -}}
{{- $volumes = append $volumes (dict "name" "token" "secret" (dict "secretName" . "defaultMode" $mode "items" $items)) -}}
{{- end -}}
{{- with .Values.upstream.ca -}}
{{- $items := list (dict "key" .key "path" "ca.crt") -}}
{{- if .existingSecret -}}
{{- $volumes = append $volumes (dict "name" "ca" "secret" (dict "secretName" .existingSecret "defaultMode" $mode "items" $items)) -}}
{{- else if .existingConfigMap -}}
{{- $volumes = append $volumes (dict "name" "ca" "configMap" (dict "name" .existingConfigMap "defaultMode" $mode "items" $items)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.upstream.clientCertificate.existingSecret -}}
{{- $volumes = append $volumes (dict "name" "client" "secret" (dict "secretName" . "defaultMode" $mode)) -}}
{{- end -}}
{{- if (.Values.prometheusRule).thresholds -}}
{{- $volumes = append $volumes (dict "name" "thresholds" "configMap" (dict "name" (printf "%s-thresholds" $full))) -}}
{{- end -}}
{{- with include "api-exporter.accountSources" . | fromYamlArray -}}
{{- $volumes = append $volumes (dict "name" "accounts" "projected" (dict "defaultMode" $mode "sources" .)) -}}
{{- end -}}
{{- if .Values.events.enabled -}}
{{- $volumes = append $volumes (dict "name" "events" "persistentVolumeClaim" (dict "claimName" (printf "%s-events" $full))) -}}
{{- end -}}
{{- with .Values.web -}}
{{- $sources := list -}}
{{- if .existingSecret -}}
{{- $sources = append $sources (dict "secret" (dict "name" .existingSecret)) -}}
{{- else if .config -}}
{{- $sources = append $sources (dict "secret" (dict "name" (printf "%s-web" $full))) -}}
{{- end -}}
{{- with .certificate.existingSecret -}}
{{- $sources = append $sources (dict "secret" (dict "name" .)) -}}
{{- end -}}
{{- if $sources -}}
{{- $volumes = append $volumes (dict "name" "web" "projected" (dict "defaultMode" $mode "sources" $sources)) -}}
{{- end -}}
{{- with .tokens.existingSecret -}}
{{- $items := list (dict "key" $.Values.web.tokens.key "path" "tokens") -}}
{{- $volumes = append $volumes (dict "name" "web-tokens" "secret" (dict "secretName" . "defaultMode" $mode "items" $items)) -}}
{{- end -}}
{{- end -}}
{{ toYaml $volumes }}
{{- end }}

{{/* Of the volumes above. */}}
{{- define "api-exporter.mounts" -}}
{{- $paths := dict
    "token" "/run/secrets/api-exporter"
    "ca" "/run/secrets/api-exporter-ca"
    "client" "/run/secrets/api-exporter-client"
    "accounts" "/etc/api-exporter/accounts"
    "events" "/events"
    "thresholds" "/etc/api-exporter/thresholds"
    "web" "/run/secrets/api-exporter-web"
    "web-tokens" "/run/secrets/api-exporter-web-tokens" -}}
{{- $mounts := list -}}
{{- range . -}}
{{- $mounts = append $mounts (dict "name" .name "mountPath" (index $paths .name) "readOnly" (ne .name "events")) -}}
{{- end -}}
{{ toYaml $mounts }}
{{- end }}

{{/* The files of several accounts: what the chart makes, and where all of them come from. */}}

{{/* Those that are made of settings, each text by its name. */}}
{{- define "api-exporter.accountFiles" -}}
{{- range $name, $account := .Values.accounts }}
{{- if not (or $account.existingSecret $account.existingConfigMap) }}
{{- $lines := list }}
{{- range $setting, $value := $account.settings }}
{{- $quoted := include "api-exporter.text" $value | replace "\\" "\\\\" | replace "\"" "\\\"" | replace "$" "\\$" | replace "`" "\\`" }}
{{- $lines = append $lines (printf "%s=\"%s\"" $setting $quoted) }}
{{- end }}
{{- if $account.token }}
{{- $lines = append $lines (printf "UPSTREAM_API_TOKEN_FILE=%s.token" $name) }}
{{- end }}
{{ $name }}.conf: {{ join "\n" $lines | printf "%s\n" | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* Tokens that stand in the values, each by the name of its file. */}}
{{- define "api-exporter.accountTokens" -}}
{{- range $name, $account := .Values.accounts }}
{{- with (default dict $account.token).value }}
{{ $name }}.token: {{ toString . | b64enc }}
{{- end }}
{{- end }}
{{- end }}

{{- define "api-exporter.accountSources" -}}
{{- $full := include "api-exporter.fullname" . -}}
{{- $sources := list -}}
{{- if include "api-exporter.accountFiles" . -}}
{{- $sources = append $sources (dict "configMap" (dict "name" (printf "%s-accounts" $full))) -}}
{{- end -}}
{{- if include "api-exporter.accountTokens" . -}}
{{- $sources = append $sources (dict "secret" (dict "name" (printf "%s-accounts" $full))) -}}
{{- end -}}
{{- range $name, $account := .Values.accounts -}}
{{- $file := printf "%s.conf" $name -}}
{{- $items := list (dict "key" (default $file $account.key) "path" $file) -}}
{{- with $account.existingSecret -}}
{{- $sources = append $sources (dict "secret" (dict "name" . "items" $items)) -}}
{{- end -}}
{{- with $account.existingConfigMap -}}
{{- $sources = append $sources (dict "configMap" (dict "name" . "items" $items)) -}}
{{- end -}}
{{- with $account.token -}}
{{- if .existingSecret -}}
{{- $items := list (dict "key" (default "token" .key) "path" (printf "%s.token" $name)) -}}
{{- $sources = append $sources (dict "secret" (dict "name" .existingSecret "items" $items)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .Values.accountsFrom -}}
{{- with .existingSecret -}}
{{- $sources = append $sources (dict "secret" (dict "name" .)) -}}
{{- end -}}
{{- with .existingConfigMap -}}
{{- $sources = append $sources (dict "configMap" (dict "name" .)) -}}
{{- end -}}
{{- end -}}
{{ toYaml $sources }}
{{- end }}

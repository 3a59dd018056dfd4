{{/* What objects are called, and the labels and annotations that all of them have. */}}

{{- define "api-exporter.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* At most 50 characters: a StatefulSet adds a number and a hash to it, others a word. A release may
     have dots in its name, a Service may not. */}}
{{- define "api-exporter.fullname" -}}
{{- $name := include "api-exporter.name" . -}}
{{- $both := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{ default $both .Values.fullnameOverride | replace "." "-" | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "api-exporter.namespace" -}}
{{ default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "api-exporter.serviceAccount" -}}
{{ default (.Values.serviceAccount.create | ternary (include "api-exporter.fullname" .) "default") .Values.serviceAccount.name }}
{{- end }}

{{/* Quoted, as all names are: 2026 and 1e3 are names. */}}
{{- define "api-exporter.selector" -}}
app.kubernetes.io/name: {{ include "api-exporter.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: exporter
{{- end }}

{{/* Of (list . labels): those that every object has, and its own. */}}
{{- define "api-exporter.labels" -}}
{{- $top := first . -}}
{{- $usual := dict
    "helm.sh/chart" (printf "%s-%s" $top.Chart.Name $top.Chart.Version | replace "+" "_" | trunc 63)
    "app.kubernetes.io/version" $top.Chart.AppVersion
    "app.kubernetes.io/managed-by" $top.Release.Service
    "app.kubernetes.io/part-of" "monitoring" -}}
{{ mergeOverwrite $usual (deepCopy $top.Values.commonLabels) (deepCopy (last .)) (include "api-exporter.selector" $top | fromYaml) | toYaml }}
{{- end }}

{{/* Of a dict: top; maybe name (a suffix), namespace, labels, annotations. */}}
{{- define "api-exporter.metadata" -}}
{{- $top := .top -}}
name: {{ list (include "api-exporter.fullname" $top) .name | compact | join "-" | quote }}
namespace: {{ default (include "api-exporter.namespace" $top) .namespace | quote }}
labels:
  {{- include "api-exporter.labels" (list $top (default dict .labels)) | nindent 2 }}
{{- with mergeOverwrite (deepCopy $top.Values.commonAnnotations) (deepCopy (default dict .annotations)) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "api-exporter.image" -}}
{{- $image := .Values.image -}}
{{ list (default $image.registry .Values.global.imageRegistry) $image.repository | compact | join "/" }}
{{- with $image.digest }}@{{ . }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{/* Whether clients must authenticate, and the scheme of the pages. */}}
{{- define "api-exporter.authentication" -}}
{{- with .Values.web }}{{ if or .config .existingSecret .tokens.existingSecret }}yes{{ end }}{{ end }}
{{- end }}

{{- define "api-exporter.scheme" -}}
{{ default (hasKey .Values.web.config "tls_server_config" | ternary "https" "http") .Values.scrape.scheme }}
{{- end }}

{{/* The port behind the Service's name, which without a cluster IP is the pod's. */}}
{{- define "api-exporter.port" -}}
{{ eq .Values.service.clusterIP "None" | ternary .Values.containerPort .Values.service.port }}
{{- end }}

{{/* The Secret that holds the token for all accounts; empty where there is none. */}}
{{- define "api-exporter.tokenSecret" -}}
{{- $token := .Values.upstream.token -}}
{{- $usual := include "api-exporter.fullname" . -}}
{{- if $token.existingSecret }}{{ $token.existingSecret }}
{{- else if or $token.value (not (or .Values.accounts .Values.accountsFrom .Values.demo)) }}{{ $usual }}
{{- end }}
{{- end }}

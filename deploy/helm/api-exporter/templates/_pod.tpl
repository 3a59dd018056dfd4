{{/* The pod's template, for Deployment and StatefulSet alike. */}}

{{- define "api-exporter.pod" -}}
{{- $full := include "api-exporter.fullname" . -}}
{{- $values := .Values -}}
metadata:
  labels:
    {{- include "api-exporter.labels" (list . .Values.podLabels) | nindent 4 }}
  annotations:
    checksum/configuration: {{ list (include "api-exporter.accountFiles" .) (include "api-exporter.secrets" .) (.Values.prometheusRule).thresholds | toJson | sha256sum }}
    {{- with mergeOverwrite (deepCopy .Values.commonAnnotations) (deepCopy .Values.podAnnotations) }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "api-exporter.serviceAccount" . | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with concat .Values.global.imagePullSecrets .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- range $key := list "priorityClassName" "runtimeClassName" "dnsPolicy" "dnsConfig" "hostAliases" "nodeSelector" "tolerations" "affinity" "initContainers" }}
  {{- with index $values $key }}
  {{ $key }}: {{ toJson . }}
  {{- end }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- $ours := dict "matchLabels" (include "api-exporter.selector" $ | fromYaml) }}
    {{- range . }}
    - {{ kindIs "invalid" .labelSelector | ternary (set (deepCopy .) "labelSelector" $ours) . | toJson }}
    {{- end }}
  {{- end }}
  {{- if not (kindIs "invalid" .Values.hostUsers) }}
  hostUsers: {{ .Values.hostUsers }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: api-exporter
      image: {{ include "api-exporter.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      {{- with concat (.Values.demo | ternary (list "--demo") list) (.Values.pprof | ternary (list "--enable-pprof") list) .Values.extraArgs }}
      args:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      env:
        {{- include "api-exporter.env" . | nindent 8 }}
      {{- with .Values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ .Values.containerPort }}
          protocol: TCP
      livenessProbe:
        {{- include "api-exporter.probe" (list . .Values.livenessProbe "/health") | nindent 8 }}
      readinessProbe:
        {{- include "api-exporter.probe" (list . .Values.readinessProbe "/ready") | nindent 8 }}
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.securityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- $volumes := include "api-exporter.volumes" . | fromYamlArray }}
      {{- with concat (include "api-exporter.mounts" $volumes | fromYamlArray) .Values.extraVolumeMounts }}
      volumeMounts:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with concat $volumes .Values.extraVolumes }}
  volumes:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Settings, those that other values stand for first. */}}
{{- define "api-exporter.env" -}}
{{- $accounts := or .Values.accounts .Values.accountsFrom -}}
- name: LISTEN_ADDRESS
  value: ":{{ .Values.containerPort }}"
{{- with .Values.upstream.url }}
- name: UPSTREAM_API_URL
  value: {{ . | quote }}
{{- end }}
{{- if include "api-exporter.tokenSecret" . }}
- name: UPSTREAM_API_TOKEN_FILE
  value: /run/secrets/api-exporter/token
{{- end }}
{{- with .Values.upstream.ca }}
{{- if or .existingSecret .existingConfigMap }}
- name: UPSTREAM_CA_FILE
  value: /run/secrets/api-exporter-ca/ca.crt
{{- end }}
{{- end }}
{{- if .Values.upstream.clientCertificate.existingSecret }}
- name: UPSTREAM_CLIENT_CERT_FILE
  value: /run/secrets/api-exporter-client/tls.crt
- name: UPSTREAM_CLIENT_KEY_FILE
  value: /run/secrets/api-exporter-client/tls.key
{{- end }}
{{- if $accounts }}
- name: ACCOUNTS_DIR
  value: /etc/api-exporter/accounts
{{- end }}
{{- if (.Values.prometheusRule).thresholds }}
- name: THRESHOLDS_FILE
  value: /etc/api-exporter/thresholds/thresholds.json
{{- end }}
{{- if gt (int .Values.shards) 1 }}
- name: SHARD
  value: auto/{{ .Values.shards }}
{{- end }}
{{- if or .Values.web.config .Values.web.existingSecret }}
- name: WEB_CONFIG_FILE
  value: /run/secrets/api-exporter-web/web.yml
{{- end }}
{{- if .Values.web.tokens.existingSecret }}
- name: WEB_BEARER_TOKENS_FILE
  value: /run/secrets/api-exporter-web-tokens/tokens
{{- end }}
{{- range $name, $value := merge (deepCopy (default dict .Values.settings)) (include "api-exporter.eventSettings" . | fromYaml) }}
- name: {{ $name }}
  value: {{ include "api-exporter.text" $value | quote }}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Of one account: of several each has its own. */}}
{{- define "api-exporter.eventSettings" -}}
{{- if and .Values.events.enabled (not (or .Values.accounts .Values.accountsFrom)) }}
EVENTS_FILE: "-"
EVENTS_CURSOR_FILE: /events/cursor
{{- end }}
{{- end }}

{{/* A value as it was written: Helm takes whole numbers for broken ones, and tells 1000000 as 1e+06. */}}
{{- define "api-exporter.text" -}}
{{ and (kindIs "float64" .) (eq (toString .) (toString (floor .))) | ternary (toJson .) (toString .) }}
{{- end }}

{{/* Of (list . probe page). With authentication it asks from inside, where no certificate or password is needed. */}}
{{- define "api-exporter.probe" -}}
{{- $top := index . 0 -}}
{{- $probe := deepCopy (default dict (index . 1)) -}}
{{- $page := index . 2 -}}
{{- if not (or $probe.httpGet $probe.exec $probe.tcpSocket) -}}
{{- if include "api-exporter.authentication" $top -}}
{{- $probe = set $probe "exec" (dict "command" (list "api-exporter" "--health" $page)) -}}
{{- else -}}
{{- $probe = set $probe "httpGet" (dict "path" $page "port" "http") -}}
{{- end -}}
{{- end -}}
{{ toYaml $probe }}
{{- end }}

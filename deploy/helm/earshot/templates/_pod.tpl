{{/* The environment of every process: where secrets lie as files, Temporal, and settings. */}}
{{- define "earshot.env" -}}
{{- range $name, $_ := .Values.secrets }}
- name: {{ $name }}_FILE
  value: /run/secrets/earshot/{{ $name }}
{{- end }}
- name: TEMPORAL_ADDRESS
  value: {{ .Values.temporal.address | quote }}
- name: TEMPORAL_NAMESPACE
  value: {{ .Values.temporal.namespace | quote }}
{{- with .Values.temporal.tls }}
{{- if .enabled }}
- name: TEMPORAL_TLS
  value: "true"
{{- if .serverName }}
- name: TEMPORAL_TLS_SERVER_NAME
  value: {{ .serverName | quote }}
{{- end }}
{{- if .clientSecret }}
- name: TEMPORAL_TLS_CLIENT_CERT_PATH
  value: /run/secrets/earshot/temporal/tls.crt
- name: TEMPORAL_TLS_CLIENT_KEY_PATH
  value: /run/secrets/earshot/temporal/tls.key
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.authorities }}
{{- if or .configMap .secret }}
{{- /* Beside the system's file, which SSL_CERT_FILE would replace. */}}
- name: SSL_CERT_DIR
  value: /run/authorities
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  {{- /* Helm reads numbers as floats, which it would write as 1e+06. */}}
  value: {{ ternary (int64 $value) $value (kindIs "float64" $value) | toString | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
A pod. It takes a dict: root, labels (by which it is selected, as YAML), image, args,
resources, and optionally env and ports (maps), health (a port, and the path that says
whether it is ready), restartPolicy, grace and spread.
*/}}
{{- define "earshot.pod" -}}
{{- $root := .root -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    {{- .labels | nindent 4 }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $values.serviceAccountName }}
  serviceAccountName: {{ . }}
  {{- end }}
  # Nothing here speaks to Kubernetes; and a Service that is called earshot would put
  # variables such as EARSHOT_PORT among the settings.
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .restartPolicy }}
  restartPolicy: {{ . }}
  {{- end }}
  {{- with .grace }}
  terminationGracePeriodSeconds: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    # May read the files of secrets.
    fsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: earshot
      image: {{ .image | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: {{ .args | toJson }}
      env:
        {{- include "earshot.env" $root | trim | nindent 8 }}
        {{- range $name, $value := .env }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      {{- with .ports }}
      ports:
        {{- range $name, $port := . }}
        - name: {{ $name }}
          containerPort: {{ $port }}
        {{- end }}
      {{- end }}
      {{- with .health }}
      startupProbe:
        httpGet: {path: /healthz, port: {{ .port }}}
        periodSeconds: 2
        failureThreshold: 30
      livenessProbe:
        httpGet: {path: /healthz, port: {{ .port }}}
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: {{ .ready }}, port: {{ .port }}}
        timeoutSeconds: 5
      {{- end }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: secrets
          mountPath: /run/secrets/earshot
          readOnly: true
        {{- if or $values.authorities.configMap $values.authorities.secret }}
        - name: authorities
          mountPath: /run/authorities
          readOnly: true
        {{- end }}
  volumes:
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          {{- range $name, $from := $values.secrets }}
          - secret:
              name: {{ $from.secret | default $values.existingSecret }}
              items:
                - {key: {{ $from.key | default $name }}, path: {{ $name }}}
          {{- end }}
          {{- if and $values.temporal.tls.enabled $values.temporal.tls.clientSecret }}
          - secret:
              name: {{ $values.temporal.tls.clientSecret }}
              items:
                - {key: tls.crt, path: temporal/tls.crt}
                - {key: tls.key, path: temporal/tls.key}
          {{- end }}
    {{- if or $values.authorities.configMap $values.authorities.secret }}
    - name: authorities
      projected:
        defaultMode: 0444
        sources:
          {{- with $values.authorities.configMap }}
          - configMap:
              name: {{ . }}
              items:
                - {key: {{ $values.authorities.key }}, path: configmap.crt}
          {{- end }}
          {{- with $values.authorities.secret }}
          - secret:
              name: {{ . }}
              items:
                - {key: {{ $values.authorities.key }}, path: secret.crt}
          {{- end }}
    {{- end }}
  {{- if .spread }}
  {{- with $values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    - topologyKey: {{ .topologyKey }}
      maxSkew: {{ .maxSkew }}
      whenUnsatisfiable: {{ .whenUnsatisfiable }}
      labelSelector:
        matchLabels:
          {{- $.labels | nindent 10 }}
      # The pods of one revision among themselves, or the old ones would push the new
      # ones into one corner.
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Names and labels. */}}
{{- define "earshot.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 36 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 36 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 36 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "earshot.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "earshot.labels" -}}
{{ include "earshot.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* The image of the API, of the jobs and of the workers without versions. */}}
{{- define "earshot.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/*
The Deployments of workers as a JSON list: the plain one, and one for each version.
Each has a name, an image, a count, the value of the label by which it selects its pods,
and the build id, which the plain one lacks.
*/}}
{{- define "earshot.workers" -}}
{{- $all := list -}}
{{- $labels := dict -}}
{{- $name := printf "%s-worker" (include "earshot.fullname" .) -}}
{{- if .Values.worker.plain -}}
{{- $all = append $all (dict "name" $name "image" (include "earshot.image" .) "replicas" .Values.worker.replicas "label" "plain") -}}
{{- end -}}
{{- range .Values.worker.versions -}}
{{- $label := printf "%s-%s" (regexReplaceAll "[^a-z0-9]+" (lower .buildId) "-" | trimAll "-" | trunc 10 | trimSuffix "-") (sha256sum .buildId | trunc 6) -}}
{{- if hasKey $labels $label -}}
{{- fail (printf "worker.versions has the build id %s twice" .buildId) -}}
{{- end -}}
{{- $_ := set $labels $label true -}}
{{- $image := printf "%s:%s" $.Values.image.repository (.tag | default .buildId) -}}
{{- if .digest -}}
{{- $image = printf "%s@%s" $.Values.image.repository .digest -}}
{{- end -}}
{{- $count := ternary .replicas $.Values.worker.replicas (hasKey . "replicas") -}}
{{- $all = append $all (dict "name" (printf "%s-%s" $name $label) "image" $image "replicas" $count "label" $label "buildId" .buildId) -}}
{{- end -}}
{{- if not $all -}}
{{- fail "worker.plain is false and worker.versions is empty: no worker would deliver webhooks" -}}
{{- end -}}
{{- $all | toJson -}}
{{- end -}}

{{/* The seconds of a duration such as 1m30s. */}}
{{- define "earshot.seconds" -}}
{{- $seconds := 0 -}}
{{- range $unit, $factor := dict "h" 3600 "m" 60 "s" 1 -}}
{{- $seconds = add $seconds (mul $factor (regexFind (printf "[0-9]+%s" $unit) $ | trimSuffix $unit | int)) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}

{{/*
What a process may need to stop: the drain delay, five times the drain timeout and 15 s
(docs/operating.md, Several workers), and 10 s for everything else.
*/}}
{{- define "earshot.grace" -}}
{{- $delay := include "earshot.seconds" .Values.settings.EARSHOT_DRAIN_DELAY | int -}}
{{- $drain := include "earshot.seconds" (.Values.settings.EARSHOT_DRAIN_TIMEOUT | default "20s") | int -}}
{{- add $delay (mul 5 $drain) 15 10 -}}
{{- end -}}

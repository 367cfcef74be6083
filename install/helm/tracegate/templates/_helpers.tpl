{{/* Labels of all objects. */}}
{{- define "tracegate.labels" -}}
{{ include "tracegate.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Of the pods of the controller; tgctl finds them by the second. */}}
{{- define "tracegate.selector" -}}
app.kubernetes.io/name: tracegate
tracegate: tracegate
{{- end }}

{{- define "tracegate.image" -}}
{{- with .Values.image -}}
{{ .registry }}/{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "tracegate.proxyImage" -}}
{{- $own := .Values.image -}}
{{- with .Values.proxy.image -}}
{{ .registry | default $own.registry }}/{{ .repository | default $own.repository }}:{{ .tag | default $own.tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Cluster-scoped objects: unique among installations. */}}
{{- define "tracegate.clusterName" -}}
tracegate-{{ .Release.Namespace }}
{{- end }}

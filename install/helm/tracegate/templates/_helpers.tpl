{{/* Labels of all objects. */}}
{{- define "tracegate.labels" -}}
{{ include "tracegate.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- include "tracegate.commonLabels" . }}
{{- end }}

{{/* Labels from the user. They cannot replace labels that the chart sets itself, by which objects are found. */}}
{{- define "tracegate.commonLabels" -}}
{{- $own := list "app.kubernetes.io/name" "tracegate" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" -}}
{{- range $name, $value := .Values.commonLabels }}
{{- if has $name $own }}{{ fail (printf "commonLabels: the chart sets %s itself" $name) }}{{ end }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "tracegate.serviceAccount" -}}
{{- $given := .Values.serviceAccount -}}
{{- if and (not $given.create) (not $given.name) }}{{ fail "serviceAccount.create=false needs serviceAccount.name: an existing ServiceAccount" }}{{ end -}}
{{ $given.name | default "tracegate" }}
{{- end }}

{{/* Of the pods of the controller; tgctl finds them by the second. */}}
{{- define "tracegate.selector" -}}
app.kubernetes.io/name: tracegate
tracegate: tracegate
{{- end }}

{{- define "tracegate.image" -}}
{{- with .Values.image -}}
{{ .registry }}/{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "tracegate.proxyImage" -}}
{{- $own := .Values.image -}}
{{- with .Values.proxy.image -}}
{{- $digest := .digest | default (ternary "" $own.digest (or .repository .tag | not | not)) -}}
{{ .registry | default $own.registry }}/{{ .repository | default $own.repository }}{{ if $digest }}@{{ $digest }}{{ else }}:{{ .tag | default $own.tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* Cluster-scoped objects: unique among installations. */}}
{{- define "tracegate.clusterName" -}}
tracegate-{{ .Release.Namespace }}
{{- end }}

{{/* Names and labels. Those of the api and of the database are what users' commands rely on
     (docs/reference/kubernetes.md 18); everything else is called resolute-<part>-<release>. */}}

{{- define "resolute.app" -}}
{{- $rel := .root.Release.Name -}}
{{- if eq .part "master" -}}determined-master-{{ $rel }}
{{- else if eq .part "db" -}}determined-db-{{ $rel }}
{{- else -}}resolute-{{ .part }}-{{ $rel }}
{{- end -}}
{{- end -}}

{{/* Labels that say what an object belongs to: root, part. Pods have those of _selectors.tpl besides. */}}
{{- define "resolute.labels" -}}
release: {{ .root.Release.Name }}
determined-system: {{ .part }}
app.kubernetes.io/name: resolute
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
app.kubernetes.io/version: {{ include "resolute.tag" .root | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{/* The tag of all images. */}}
{{- define "resolute.tag" -}}
{{- .Values.detVersion | default .Chart.AppVersion -}}
{{- end -}}

{{/* Where the images are; empty takes those of the nodes. determinedai is the default of charts for Determined, and has none of ours. */}}
{{- define "resolute.registry" -}}
{{- $given := .Values.imageRegistry | default "" | trimSuffix "/" -}}
{{- if ne $given "determinedai" }}{{ $given }}{{ end -}}
{{- end -}}

{{/* The image of a part: root, name, group (whose image wins). */}}
{{- define "resolute.image" -}}
{{- if .group.image -}}{{ .group.image }}
{{- else -}}
{{- with include "resolute.registry" .root }}{{ . }}/{{ end }}resolute-{{ .name }}:{{ include "resolute.tag" .root }}
{{- end -}}
{{- end -}}

{{/* An id as one token of a subject of the bus, as libs/events/subjects.py writes it. */}}
{{- define "resolute.token" -}}
{{- . | urlquery | replace "_" "=5F" | replace "~" "=7E" | replace "+" "=20" | replace "." "_" | replace "%" "=" -}}
{{- end -}}

{{/* A name of a pool that Kubernetes takes as a part of one of its own; one that has to be changed gets a digest. */}}
{{- define "resolute.slug" -}}
{{- $clean := . | lower | replace "_" "-" | replace "." "-" | replace " " "-" -}}
{{- if and (eq $clean .) (le (len .) 24) (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" .) -}}{{ . }}
{{- else -}}
{{- regexReplaceAll "[^a-z0-9-]" $clean "" | trunc 16 | trimAll "-" | default "pool" }}-{{ sha256sum . | trunc 7 }}
{{- end -}}
{{- end -}}

{{- define "resolute.serviceHost" -}}
{{ .name }}.{{ .root.Release.Namespace }}.svc.cluster.local
{{- end -}}

{{/* Host name of the pages of tasks, without scheme and port. */}}
{{- define "resolute.tasksHost" -}}
{{- index (splitList ":" (urlParse .Values.tasks.address).host) 0 -}}
{{- end -}}

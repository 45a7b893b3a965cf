{{/* The image of PostgreSQL. A server reads the files of its own major version only. */}}

{{/* PostgreSQL of this release, as in values.yaml, for values that replace the default by one that cannot be used. */}}
{{- define "resolute.ownPostgresImage" -}}
postgres:18
{{- end -}}

{{/* Major version that the tag of an image begins with; empty where it does not say. */}}
{{- define "resolute.postgresMajor" -}}
{{- regexReplaceAll "@.*" (base .) "" | regexFind ":[0-9]+" | trimPrefix ":" -}}
{{- end -}}

{{/* The image of values, or that of this release where it is older than PostgreSQL 14. */}}
{{- define "resolute.wantedPostgresImage" -}}
{{- $given := (.Values.defaultImages).postgreSQL | default (include "resolute.ownPostgresImage" .) -}}
{{- if regexMatch "postgres:(9|1[0-3])(\\.|-|$)" $given }}{{ include "resolute.ownPostgresImage" . }}{{ else }}{{ $given }}{{ end -}}
{{- end -}}

{{/* The image that stays as it is because the files of the database were made by another major version; empty where none does.
     wanted, claim (of the volume), live (spec of the pods that there are) */}}
{{- define "resolute.keptPostgresImage" -}}
{{- $image := dig "image" "" (first (.live.containers | default (list dict))) -}}
{{- $claim := "" -}}
{{- range .live.volumes }}{{ if eq .name "data" }}{{ $claim = dig "persistentVolumeClaim" "claimName" "" . }}{{ end }}{{ end -}}
{{- $major := include "resolute.postgresMajor" $image -}}
{{- $wanted := include "resolute.postgresMajor" .wanted -}}
{{- if and $major $wanted (ne $major $wanted) (eq $claim .claim) }}{{ $image }}{{ end -}}
{{- end -}}

{{- define "resolute.livePostgresImage" -}}
{{- $live := lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "determined-db-deployment-%s" .Release.Name) | default dict -}}
{{- $claim := ternary "none" (include "resolute.databaseClaim" .) (not (not .Values.db.disablePVC)) -}}
{{- include "resolute.keptPostgresImage" (dict "wanted" (include "resolute.wantedPostgresImage" .) "claim" $claim "live" (dig "spec" "template" "spec" dict $live)) -}}
{{- end -}}

{{- define "resolute.postgresImage" -}}
{{- include "resolute.livePostgresImage" . | default (include "resolute.wantedPostgresImage" .) -}}
{{- end -}}

{{- define "resolute.databaseClaim" -}}
{{- $suffix := .Values.db.claimSuffix | default .Release.Name -}}
{{- if and .Release.IsUpgrade .Values.db.restoreSnapshotSuffix }}{{ $suffix = .Values.db.restoreSnapshotSuffix }}{{ end -}}
{{- .Values.db.existingClaim | default (printf "determined-db-pvc-%s" $suffix) -}}
{{- end -}}

{{- define "resolute.migrationHook" -}}
{{- if .Values.db.hostAddress }}pre-install,pre-upgrade{{ else }}pre-upgrade{{ end -}}
{{- end -}}

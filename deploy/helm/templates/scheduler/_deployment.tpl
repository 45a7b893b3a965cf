{{- define "resolute.schedulerEnv" -}}
{{ include "resolute.databaseEnv" (dict "root" .) }}
{{ include "resolute.servicesBusEnv" (dict "root" . "name" "resolute-scheduler") }}
- {name: RESOLUTE_CLUSTER_CONFIG, value: /etc/resolute/master.yaml}
{{- end -}}

{{- define "resolute.schedulerVolumes" -}}
- name: config
  secret: {secretName: determined-master-config-{{ .Release.Name }}}
{{ include "resolute.databaseVolumes" . }}
{{- end -}}

{{- define "resolute.schedulerMounts" -}}
- {name: config, mountPath: /etc/resolute/master.yaml, subPath: master.yaml, readOnly: true}
{{ include "resolute.databaseMounts" . }}
{{- end -}}

{{/* A new database, or one that was put in the place of another, gets its role and its tables here. */}}
{{- define "resolute.schedulerInit" -}}
{{- if include "resolute.servicesRole" . }}
{{ include "resolute.migrationContainer" (dict "root" . "name" "database" "secret" (printf "resolute-generated-%s" .Release.Name)) }}
{{- end }}
{{- end -}}

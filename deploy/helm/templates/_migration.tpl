{{- define "resolute.migrationHook" -}}
{{- if .Values.db.hostAddress }}pre-install,pre-upgrade{{ else }}pre-upgrade{{ end -}}
{{- end -}}

{{/* The role that services connect to the database as, which the migration makes; nothing where it is db.user. */}}
{{- define "resolute.servicesRole" -}}
{{- $role := .Values.db.servicesUser | default (ternary "" "resolute_services" (not (not .Values.db.hostAddress))) -}}
{{- if ne $role .Values.db.user }}{{ $role }}{{ end -}}
{{- end -}}

{{/* A container that brings the database to the schema of this release, and gives it to the role of the services:
     root, name, secret (with the credentials of db.user). */}}
{{- define "resolute.migrationContainer" -}}
{{- $root := .root -}}
- name: {{ .name }}
  image: {{ include "resolute.image" (dict "root" $root "group" $root.Values.migration "name" "tools") | quote }}
  imagePullPolicy: {{ $root.Values.masterImagePullPolicy }}
  command: [resolute, db, upgrade]
  securityContext: {{- include "resolute.containerSecurity" . | nindent 4 }}
  env:
    {{- include "resolute.databaseEnv" (dict "root" $root "secret" .secret "key" "database-url") | nindent 4 }}
    {{- with include "resolute.servicesRole" $root }}
    - {name: RESOLUTE_SERVICES_ROLE__USER, value: {{ . | quote }}}
    - name: RESOLUTE_SERVICES_ROLE__PASSWORD
      valueFrom: {secretKeyRef: {name: {{ $.secret }}, key: services-database-password}}
    {{- end }}
  resources: {{- toYaml $root.Values.migration.resources | nindent 4 }}
  volumeMounts:
    - {name: tmp, mountPath: /tmp}
    {{- with include "resolute.databaseMounts" $root }}{{ . | nindent 4 }}{{ end }}
{{- end -}}

{{- define "resolute.migrationHook" -}}
{{- if .Values.db.hostAddress }}pre-install,pre-upgrade{{ else }}pre-upgrade{{ end -}}
{{- end -}}

{{/* The role that services connect to the database as, which the migration makes; nothing where it is db.user. */}}
{{- define "resolute.servicesRole" -}}
{{- $role := .Values.db.servicesUser | default (ternary "" "resolute_services" (not (not .Values.db.hostAddress))) -}}
{{- if ne $role .Values.db.user }}{{ $role }}{{ end -}}
{{- end -}}

{{/* A container that brings the database to the schema of this release, and gives it to the role of the services:
     root, name, secret (with the credentials of db.user), action (upgrade unless given), former (variables, YAML). */}}
{{- define "resolute.migrationContainer" -}}
{{- $root := .root -}}
- name: {{ .name }}
  image: {{ include "resolute.image" (dict "root" $root "group" $root.Values.migration "name" "tools") | quote }}
  imagePullPolicy: {{ $root.Values.masterImagePullPolicy }}
  command: [resolute, db, {{ .action | default "upgrade" }}]
  securityContext: {{- include "resolute.containerSecurity" . | nindent 4 }}
  env:
    {{- include "resolute.databaseEnv" (dict "root" $root "secret" .secret "key" "database-url") | nindent 4 }}
    {{- with .former }}
    {{- . | nindent 4 }}
    {{- end }}
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

{{/* With which password the database of this chart was opened so far: the Secret that is live while hooks run before an upgrade or
     a rollback. */}}
{{- define "resolute.formerDatabaseEnv" -}}
{{- if not .Values.db.hostAddress -}}
- name: RESOLUTE_FORMER_DATABASE_URL
  valueFrom: {secretKeyRef: {name: resolute-generated-{{ .Release.Name }}, key: database-url, optional: true}}
{{- end -}}
{{- end -}}

{{/* What the values say of passwords of the database: pods that have them are replaced when they change. */}}
{{- define "resolute.databasePasswords" -}}
{{- printf "%s%s" (.Values.db.password | default "") (.Values.db.servicesPassword | default "") -}}
{{- end -}}

{{/* Whether a rollback to these values changes the password of the database: it is given, so that it is not that of the Secret
     whatever revision made that. */}}
{{- define "resolute.setsPasswordBack" -}}
{{- if and .Values.db.password (not .Values.db.hostAddress) (not .Values.launcherOnly) }}true{{ end -}}
{{- end -}}

{{/* How and where its pods run. */}}
{{- define "resolute.migrationPod" -}}
restartPolicy: Never
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{- include "resolute.podSecurity" (dict) | nindent 2 }}
{{- with .Values.imagePullSecretName }}
imagePullSecrets: [{name: {{ . }}}]
{{- end }}
{{- with .Values.migration.nodeSelector | default .Values.scheduler.nodeSelector | default .Values.masterNodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.migration.tolerations | default .Values.scheduler.tolerations | default .Values.masterTolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduler.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduler.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "resolute.logsEnv" -}}
{{ include "resolute.databaseEnv" (dict "root" .) }}
{{ include "resolute.servicesBusEnv" (dict "root" . "name" "resolute-logs") }}
- {name: RESOLUTE_INTAKE__PORT, value: "8081"}
{{- if include "resolute.intakeSpeaksTls" . }}
- {name: RESOLUTE_INTAKE__TLS__CERT, value: /etc/resolute/secrets/tls/tls.crt}
- {name: RESOLUTE_INTAKE__TLS__KEY, value: /etc/resolute/secrets/tls/tls.key}
- {name: RESOLUTE_INTAKE__TLS__PORT, value: "8443"}
{{- end }}
{{- with .Values.retentionPolicy }}
{{- if not (kindIs "invalid" .logRetentionDays) }}
- {name: RESOLUTE_RETENTION__DEFAULT_DAYS, value: {{ int .logRetentionDays | quote }}}
{{- end }}
{{- with include "resolute.seconds" (.schedule | default "") }}
- {name: RESOLUTE_RETENTION__INTERVAL_S, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end -}}

{{/* A duration such as 1h30m in seconds; nothing for what is none, such as a cron line. */}}
{{- define "resolute.seconds" -}}
{{- if regexMatch "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$" . -}}
{{- $hours := regexFind "[0-9]+h" . | trimSuffix "h" | default "0" | int -}}
{{- $minutes := regexFind "[0-9]+m" . | trimSuffix "m" | default "0" | int -}}
{{- $seconds := regexFind "[0-9]+s" . | trimSuffix "s" | default "0" | int -}}
{{- with add (mul 3600 $hours) (mul 60 $minutes) $seconds }}{{ . }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "resolute.logsMounts" -}}
{{ include "resolute.databaseMounts" . }}
{{- if include "resolute.intakeSpeaksTls" . }}
- {name: tls, mountPath: /etc/resolute/secrets/tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "resolute.logsVolumes" -}}
{{ include "resolute.databaseVolumes" . }}
{{- if include "resolute.intakeSpeaksTls" . }}
- name: tls
  secret: {secretName: {{ .Values.tlsSecret }}}
{{- end }}
{{- end -}}

{{- define "resolute.logsPorts" -}}
- {name: http, containerPort: 8081}
{{- if include "resolute.intakeSpeaksTls" . }}
- {name: https, containerPort: 8443}
{{- end }}
{{- end -}}

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

{{/* Whether new tasks bring their lines over HTTPS. Those that were started with the address of before go on over HTTP. */}}
{{- define "resolute.intakeSpeaksTls" -}}
{{- if and (.Values.logs).tls (not .Values.launcherOnly) -}}
{{- if ne (include "resolute.apiSpeaksTls" .) "true" -}}
{{- fail "logs.tls needs tlsSecret, and tls.termination api: the log intake has the certificate of the api" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{- define "resolute.intakeUrl" -}}
{{- $host := include "resolute.serviceHost" (dict "root" . "name" (include "resolute.app" (dict "root" . "part" "logs"))) -}}
{{- $own := ternary (printf "https://%s:8443" $host) (printf "http://%s:8081" $host) (eq (include "resolute.intakeSpeaksTls" .) "true") -}}
{{- .Values.logs.url | default $own -}}
{{- end -}}

{{/* The name that tasks look for in the certificate of the api and of the log intake: root, url (of the api); empty for the host
     of each. The certificate has the name of the Service of the api, not that of the intake. */}}
{{- define "resolute.certificateName" -}}
{{- if .root.Values.tls.certificateName -}}{{ .root.Values.tls.certificateName }}
{{- else if include "resolute.intakeSpeaksTls" .root -}}{{ regexReplaceAll ":[0-9]+$" (urlParse .url).host "" }}
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

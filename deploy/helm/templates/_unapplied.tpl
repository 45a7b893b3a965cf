{{/* Values of charts for 0.38.1 that are read and change nothing, and why: a JSON array of sentences. */}}
{{- define "resolute.unapplied" -}}
{{- $notes := list -}}
{{- $given := .Values -}}
{{- if $given.enterpriseEdition }}{{ $notes = append $notes "enterpriseEdition: there is one edition." }}{{ end -}}
{{- if $given.saml }}{{ $notes = append $notes "saml: providers of identities are asked by OpenID Connect, see oidc." }}{{ end -}}
{{- if (($given.genai).version) }}{{ $notes = append $notes "genai: that product is not part of this chart." }}{{ end -}}
{{- if eq (($given.logging).type | default "default") "elastic" }}{{ $notes = append $notes "logging: task logs are kept in PostgreSQL." }}{{ end -}}
{{- if ($given.telemetry).enabled }}{{ $notes = append $notes "telemetry: nothing is sent to anybody." }}{{ end -}}
{{- if not (kindIs "invalid" ($given.observability).enable_prometheus) }}{{ $notes = append $notes "observability: /metrics is always served." }}{{ end -}}
{{- if $given.logColor }}{{ $notes = append $notes "logColor: logs are JSON." }}{{ end -}}
{{- with ($given.retentionPolicy).schedule -}}
{{- if not (include "resolute.seconds" .) }}{{ $notes = append $notes (printf "retentionPolicy.schedule: %q is no duration such as 24h; expired lines are deleted every hour." .) }}{{ end -}}
{{- end -}}
{{- if not (has (trim ($given.defaultScheduler | default "")) (list "" "coscheduler")) }}{{ $notes = append $notes (printf "defaultScheduler: %s is not available; gangs are started whole and by priority." (trim ($given.defaultScheduler | default ""))) }}{{ end -}}
{{- toJson $notes -}}
{{- end -}}

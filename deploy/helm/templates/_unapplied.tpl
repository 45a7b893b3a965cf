{{/* Values of charts for 0.38.1 that are read and change nothing, and why: a JSON array of sentences. */}}
{{- define "resolute.unapplied" -}}
{{- $notes := list -}}
{{- $given := .Values -}}
{{- if eq ($given.imageRegistry | default "" | trimSuffix "/") "determinedai" }}{{ $notes = append $notes "imageRegistry: determinedai has no images of Resolute; those that the nodes have are taken until a registry of yours is given." }}{{ end -}}
{{- if not (or $given.db.hostAddress $given.launcherOnly) -}}
{{- $image := ($given.defaultImages).postgreSQL | default (include "resolute.ownPostgresImage" .) -}}
{{- $wanted := include "resolute.wantedPostgresImage" . -}}
{{- if ne $image $wanted }}{{ $notes = append $notes (printf "defaultImages.postgreSQL: %s is older than PostgreSQL 14, which is needed; %s is taken." $image $wanted) }}{{ end -}}
{{- with include "resolute.livePostgresImage" . }}{{ $notes = append $notes (printf "defaultImages.postgreSQL: the files of the database were made by %s, and %s does not read them; it stays as it is. A newer one needs a new installation and a backup (docs/operations.md)." . $wanted) }}{{ end -}}
{{- end -}}
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

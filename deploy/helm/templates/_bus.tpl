{{/* The bus: who its users are, and how a service reaches it. What each user may do is in files/bus.json, which
     `python -m deploy.bus_permissions` writes from libs/events. */}}

{{- define "resolute.busUrl" -}}
{{- if .Values.nats.external.url -}}{{ .Values.nats.external.url }}
{{- else -}}
{{- $scheme := ternary "tls" "nats" (ne .Values.nats.tls.secretName "") -}}
{{- $urls := list -}}
{{- range $number := until (int .Values.nats.replicas) -}}
{{- $urls = append $urls (printf "%s://resolute-nats-%s-%d.resolute-nats-headless-%s.%s.svc.cluster.local:4222" $scheme $.Release.Name $number $.Release.Name $.Release.Namespace) -}}
{{- end -}}
{{- join "," $urls -}}
{{- end -}}
{{- end -}}

{{- define "resolute.busSecret" -}}
{{- .Values.nats.external.secretName | default (printf "resolute-generated-%s" .Release.Name) -}}
{{- end -}}

{{/* The Secret with the certificate (ca.crt) that the bus is trusted by; empty for the usual ones. */}}
{{- define "resolute.busCaSecret" -}}
{{- if .Values.nats.external.url -}}{{ .Values.nats.external.caSecretName }}
{{- else -}}{{ .Values.nats.tls.secretName }}
{{- end -}}
{{- end -}}

{{/* Variables of the section bus: root, name, user, key of the password, inbox. */}}
{{- define "resolute.busEnv" -}}
- {name: RESOLUTE_BUS__URL, value: {{ include "resolute.busUrl" .root | quote }}}
- {name: RESOLUTE_BUS__NAME, value: {{ .name | quote }}}
- {name: RESOLUTE_BUS__USER, value: {{ .user | quote }}}
- name: RESOLUTE_BUS__PASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "resolute.busSecret" .root }}, key: {{ .key }}}}
- {name: RESOLUTE_BUS__INBOX_PREFIX, value: {{ .inbox | quote }}}
{{- if include "resolute.busCaSecret" .root }}
- {name: RESOLUTE_BUS__CA_FILE, value: /etc/resolute/secrets/bus-ca/ca.crt}
{{- end }}
{{- end -}}

{{/* The same for the services of the control plane: root, name. */}}
{{- define "resolute.servicesBusEnv" -}}
{{- $bus := .root.Files.Get "files/bus.json" | fromJson -}}
{{ include "resolute.busEnv" (dict "root" .root "name" .name "user" "services" "key" "bus-services" "inbox" $bus.services_inbox) }}
- {name: RESOLUTE_BUS__COPY_EVENTS, value: "true"}
{{- with .root.Values.nats.subscribers }}
- {name: RESOLUTE_BUS__SUBSCRIBERS, value: {{ toJson . | quote }}}
{{- end }}
- {name: RESOLUTE_BUS__REPLICAS, value: {{ .root.Values.nats.external.replicas | default .root.Values.nats.replicas | int | quote }}}
{{- with .root.Values.nats.logsMaxBytes }}
- {name: RESOLUTE_BUS__LOGS_MAX_BYTES, value: {{ int64 . | quote }}}
{{- end }}
{{- end -}}

{{/* The block accounts of the server's configuration: root, passwords (a dict). */}}
{{- define "resolute.busAccounts" -}}
{{- $bus := .root.Files.Get "files/bus.json" | fromJson -}}
{{- $accounts := $bus.accounts -}}
{{- $passwords := .passwords -}}
{{- $users := list (dict "user" "services" "password" (get $passwords "bus-services")) -}}
{{- range include "resolute.pools" .root | fromJsonArray -}}
{{- $permissions := $bus.launcher | toJson | replace "POOL-TOKEN" .token | fromJson -}}
{{- $users = append $users (dict "user" (printf "launcher-%s" .token) "password" (get $passwords (printf "bus-launcher-%s" .slug)) "permissions" $permissions) -}}
{{- end -}}
{{- $_ := set (get $accounts $bus.control_plane) "users" $users -}}
{{- $_ := set (get $accounts $bus.subscribers) "users" (list (dict "user" "events" "password" (get $passwords "bus-events") "permissions" $bus.subscriber)) -}}
{{- $names := list $bus.subscribers -}}
{{- $controlPlane := get $accounts $bus.control_plane -}}
{{- range $name := .root.Values.nats.subscribers -}}
{{- $named := $bus.named_subscriber | toJson | replace "SUBSCRIBER-NAME" $name | fromJson -}}
{{- $names = append $names $named.account -}}
{{- $user := dict "user" (printf "events-%s" $name) "password" (get $passwords (printf "bus-events-%s" $name)) "permissions" $bus.subscriber -}}
{{- $_ := set $named.content "users" (list $user) -}}
{{- $_ := set $accounts $named.account $named.content -}}
{{- $_ := set $controlPlane "imports" (concat $controlPlane.imports $named.imports) -}}
{{- end -}}
{{- range $controlPlane.exports }}{{ $_ := set . "accounts" $names }}{{ end -}}
{{- toRawJson $accounts -}}
{{- end -}}

{{- define "resolute.natsConfig" -}}
{{- $root := .root -}}
{{- $rel := $root.Release.Name -}}
server_name: $POD_NAME
listen: 0.0.0.0:4222
http: 0.0.0.0:8222
# Orders carry whole specifications and files, log batches many lines.
max_payload: 8MB
lame_duck_duration: 30s
lame_duck_grace_period: 5s
jetstream {
  store_dir: /data
  max_memory_store: 256MB
  # A limit, not a reservation; the streams have their own. Those of the accounts have to fit into it.
  {{- $stored := ($root.Files.Get "files/bus.json" | fromJson).max_file_store }}
  {{- $subscribers := len ($root.Values.nats.subscribers | default list) | add 1 }}
  max_file_store: {{ add (int64 $stored.everything_else) (mul (int64 $stored.each_subscriber) $subscribers) }}
}
{{- if gt (int $root.Values.nats.replicas) 1 }}
cluster {
  name: resolute
  listen: 0.0.0.0:6222
  no_advertise: true
  authorization {user: routes, password: {{ get .passwords "bus-routes" | quote }}, timeout: 5}
  routes: [
    {{- range $number := until (int $root.Values.nats.replicas) }}
    {{ printf "nats://routes:%s@resolute-nats-%s-%d.resolute-nats-headless-%s.%s.svc.cluster.local:6222" (get $.passwords "bus-routes") $rel $number $rel $root.Release.Namespace | quote }}
    {{- end }}
  ]
  {{- if $root.Values.nats.tls.secretName }}
  tls {cert_file: /etc/nats/tls/tls.crt, key_file: /etc/nats/tls/tls.key, ca_file: /etc/nats/tls/ca.crt}
  {{- end }}
}
{{- end }}
{{- if $root.Values.nats.tls.secretName }}
tls {cert_file: /etc/nats/tls/tls.crt, key_file: /etc/nats/tls/tls.key, timeout: 5}
{{- end }}
{{- if $root.Values.nats.leafNodes }}
# For leaf nodes of the administrator's own; launchers do not stand behind them (docs/several-clusters.md).
leafnodes {
  listen: 0.0.0.0:7422
  {{- if $root.Values.nats.tls.secretName }}
  tls {cert_file: /etc/nats/tls/tls.crt, key_file: /etc/nats/tls/tls.key, timeout: 5}
  {{- end }}
}
{{- end }}
accounts: {{ include "resolute.busAccounts" . }}
{{- end -}}

{{/* Whether this upgrade makes a cluster of a server by itself; only known where a cluster is asked. */}}
{{- define "resolute.busGrows" -}}
{{- $app := include "resolute.app" (dict "root" . "part" "nats") -}}
{{- $live := (lookup "apps/v1" "StatefulSet" .Release.Namespace $app).spec | default dict -}}
{{- if and (not .Values.nats.external.url) (eq (int ($live.replicas | default 0)) 1) (gt (int .Values.nats.replicas) 1) -}}
true
{{- end -}}
{{- end -}}

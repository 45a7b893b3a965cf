{{/* Where tasks reach the api. */}}
{{- define "resolute.masterUrl" -}}
{{- $tls := and .Values.tlsSecret (or .Values.launcherOnly (eq .Values.tls.termination "api")) -}}
{{- $scheme := .Values.determinedMasterScheme | default (ternary "https" "http" (not (not $tls))) -}}
{{- if .Values.determinedMasterHost -}}
{{ $scheme }}://{{ .Values.determinedMasterHost }}:{{ int (.Values.determinedMasterPort | default .Values.masterPort) }}
{{- else -}}
{{ $scheme }}://{{ include "resolute.serviceHost" (dict "root" . "name" (printf "determined-master-service-%s" .Release.Name)) }}:{{ int .Values.masterPort }}
{{- end -}}
{{- end -}}

{{/* The same for the pools of an additional resource manager, which may say itself where tasks reach the api. */}}
{{- define "resolute.poolMasterUrl" -}}
{{- $url := include "resolute.masterUrl" .root -}}
{{- if ge (int .pool.manager) 0 -}}
{{- $manager := (index .root.Values.additional_resource_managers (int .pool.manager)).resource_manager -}}
{{- with $manager.determined_master_host | default $manager.determined_master_ip -}}
{{- $url = printf "%s://%s:%d" ($manager.determined_master_scheme | default (first (splitList ":" $url))) . (int ($manager.determined_master_port | default $.root.Values.masterPort)) -}}
{{- end -}}
{{- end -}}
{{- $url -}}
{{- end -}}

{{- define "resolute.launcherEnv" -}}
{{- $root := .root -}}
{{ include "resolute.busEnv" (dict "root" .root "name" (printf "launcher-%s" .pool.name) "user" (printf "launcher-%s" .pool.token) "key" (printf "bus-launcher-%s" .pool.slug) "inbox" (printf "_INBOX_launcher_%s" .pool.token)) }}
- {name: RESOLUTE_BUS__MANAGE_STREAMS, value: "false"}
- {name: RESOLUTE_POOL, value: {{ .pool.name | quote }}}
- {name: RESOLUTE_BACKEND, value: kubernetes}
- {name: RESOLUTE_CLUSTER_CONFIG, value: /etc/resolute/master.yaml}
- name: RESOLUTE_KUBERNETES__CLUSTER_ID
  valueFrom: {secretKeyRef: {name: resolute-generated-{{ .root.Release.Name }}, key: cluster-id}}
- {name: RESOLUTE_TASKS__MASTER_URL, value: {{ include "resolute.poolMasterUrl" . | quote }}}
- {name: RESOLUTE_TASKS__LOG_INTAKE_URL, value: {{ include "resolute.intakeUrl" .root | quote }}}
{{- if .root.Values.tlsSecret }}
- {name: RESOLUTE_TASKS__MASTER_CERT_FILE, value: /etc/resolute/secrets/tls/tls.crt}
- {name: RESOLUTE_TASKS__MASTER_CA_FILE, value: /etc/resolute/secrets/tls/ca.crt}
{{- end }}
{{- if include "resolute.additionalCa" .root }}
- {name: RESOLUTE_TASKS__ADDITIONAL_CA_FILE, value: /etc/resolute/secrets/tls/additional-ca.crt}
{{- end }}
{{- with include "resolute.certificateName" (dict "root" .root "url" (include "resolute.poolMasterUrl" .)) }}
- {name: RESOLUTE_TASKS__MASTER_CERT_NAME, value: {{ . | quote }}}
{{- end }}
{{- if eq .pool.namespace (include "resolute.defaultNamespace" .root) }}
{{- with include "resolute.formerNamespaces" .root | fromJsonArray }}
- {name: RESOLUTE_KUBERNETES__FORMER_NAMESPACES, value: {{ toJson . | quote }}}
{{- end }}
{{- end }}
{{- if include "resolute.tasksHavePolicies" . }}
- {name: RESOLUTE_KUBERNETES__TASK_NETWORK__POLICIES, value: "true"}
{{- if not .root.Values.launcherOnly }}
- {name: RESOLUTE_KUBERNETES__TASK_NETWORK__API, value: {{ include "resolute.podsAnywhere" (dict "root" .root "part" "master") | quote }}}
- {name: RESOLUTE_KUBERNETES__TASK_NETWORK__LOG_INTAKE, value: {{ include "resolute.podsAnywhere" (dict "root" .root "part" "logs") | quote }}}
{{- end }}
{{- if include "resolute.intakeSpeaksTls" .root }}
- {name: RESOLUTE_KUBERNETES__TASK_NETWORK__SERVICE_PORTS, value: "[8081, 8443]"}
{{- end }}
- {name: RESOLUTE_KUBERNETES__TASK_NETWORK__CLOSED, value: {{ include "resolute.closedRanges" .root | quote }}}
- {name: RESOLUTE_KUBERNETES__TASK_NETWORK__DNS_PORTS, value: {{ (.root.Values.networkPolicy.tasks).dnsPorts | default (list 53) | toJson | quote }}}
- {name: RESOLUTE_KUBERNETES__TASK_NETWORK__EGRESS, value: {{ include "resolute.tasksEgress" .root | quote }}}
- {name: RESOLUTE_KUBERNETES__TASK_NETWORK__INGRESS, value: {{ (.root.Values.networkPolicy.tasks).extraIngress | default list | toJson | quote }}}
{{- end }}
{{- if .root.Values.networkPolicy.enabled }}
- {name: RESOLUTE_KUBERNETES__UNREACHABLE_HINT, value: {{ printf "The NetworkPolicy resolute-launcher-%s lets launchers reach the ports %s: if `kubectl get endpointslices -n default` shows another one for the service kubernetes, give it in the value networkPolicy.kubernetesApiPorts" .root.Release.Name (include "resolute.kubernetesApiPorts" .root | fromJsonArray | join ", ") | quote }}}
{{- end }}
{{- with .group.shipper }}
- {name: RESOLUTE_KUBERNETES__SHIPPER__KIND, value: {{ . | quote }}}
{{- end }}
{{- with .root.Values.fluent }}
{{- with .image }}
- {name: RESOLUTE_KUBERNETES__SHIPPER__IMAGE, value: {{ . | quote }}}
{{- end }}
{{- if not (kindIs "invalid" .uid) }}
- {name: RESOLUTE_KUBERNETES__SHIPPER__UID, value: {{ int64 .uid | quote }}}
{{- end }}
{{- if not (kindIs "invalid" .gid) }}
- {name: RESOLUTE_KUBERNETES__SHIPPER__GID, value: {{ int64 .gid | quote }}}
{{- end }}
{{- end }}
{{- if eq (trim (.root.Values.defaultScheduler | default "")) "coscheduler" }}
- {name: RESOLUTE_KUBERNETES__DEFAULT_SCHEDULER, value: coscheduler}
{{- end }}
{{- if not (or .root.Values.launcher.rights.cluster (ge (int .pool.manager) 0)) }}
- {name: RESOLUTE_KUBERNETES__PRIORITY_CLASSES, value: "off"}
{{- end }}
{{- if not (kindIs "invalid" .group.assumedSlots) }}
- {name: RESOLUTE_KUBERNETES__ASSUMED_SLOTS, value: {{ int .group.assumedSlots | quote }}}
{{- end }}
{{- if ge (int .pool.manager) 0 }}
- {name: RESOLUTE_KUBERNETES__KUBECONFIG, value: {{ include "resolute.kubeconfigPath" . | quote }}}
{{- end }}
{{- end -}}

{{/* The source of further authorities that tasks trust, for a projected volume; empty where there are none. */}}
{{- define "resolute.additionalCa" -}}
{{- $given := .Values.tls.additionalCa | default dict -}}
{{- $items := list (dict "key" ($given.key | default "ca.crt") "path" "additional-ca.crt") -}}
{{- with $given.secretName }}{{ dict "secret" (dict "name" . "items" $items) | list | toYaml }}{{ end -}}
{{- with $given.configMapName }}{{ dict "configMap" (dict "name" . "items" $items) | list | toYaml }}{{ end -}}
{{- end -}}

{{- define "resolute.kubeconfigPath" -}}
{{- $manager := (index .root.Values.additional_resource_managers (int .pool.manager)).resource_manager -}}
{{- if $manager.kubeconfig_secret_name -}}
/mount/determined/secrets/{{ int .pool.manager }}/{{ $manager.kubeconfig_secret_value }}
{{- else -}}
{{ $manager.kubeconfig_path }}
{{- end -}}
{{- end -}}

{{- define "resolute.launcherMounts" -}}
- {name: config, mountPath: /etc/resolute/master.yaml, subPath: {{ .pool.config }}, readOnly: true}
{{- if or .root.Values.tlsSecret (include "resolute.additionalCa" .root) }}
- {name: tls, mountPath: /etc/resolute/secrets/tls, readOnly: true}
{{- end }}
{{- if ge (int .pool.manager) 0 }}
{{- if (index .root.Values.additional_resource_managers (int .pool.manager)).resource_manager.kubeconfig_secret_name }}
- {name: kubeconfig, mountPath: /mount/determined/secrets/{{ int .pool.manager }}, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "resolute.launcherVolumes" -}}
- name: config
  secret: {secretName: resolute-launcher-config-{{ .root.Release.Name }}}
{{- $additional := include "resolute.additionalCa" .root }}
{{- if or .root.Values.tlsSecret $additional }}
# Not the key: tasks only have to trust the certificate. Not by subPath: the files follow what is renewed.
- name: tls
  projected:
    sources:
      {{- with .root.Values.tlsSecret }}
      - secret: {name: {{ . }}, items: [{key: tls.crt, path: tls.crt}]}
      - secret: {name: {{ . }}, items: [{key: ca.crt, path: ca.crt}], optional: true}
      {{- end }}
      {{- with $additional }}{{ . | nindent 6 }}{{ end }}
{{- end }}
{{- if ge (int .pool.manager) 0 }}
{{- with (index .root.Values.additional_resource_managers (int .pool.manager)).resource_manager.kubeconfig_secret_name }}
- name: kubeconfig
  secret: {secretName: {{ . }}}
{{- end }}
{{- end }}
{{- end -}}


{{- define "resolute.kubernetesApiPorts" -}}
{{- $ports := list -}}
{{- range .Values.networkPolicy.kubernetesApiPorts | default (list 443 6443) }}{{ $ports = append $ports (int .) }}{{ end -}}
{{- toJson $ports -}}
{{- end -}}

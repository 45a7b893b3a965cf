{{/* What makes no sense together, said before anything is installed. */}}
{{- define "resolute.check" -}}
{{- if gt (len .Release.Name) 27 -}}
{{- fail (printf "the release name %q is longer than 27 characters: names and labels that are made from it would be too long" .Release.Name) -}}
{{- end -}}
{{- if kindIs "invalid" .Values.maxSlotsPerPod -}}
{{- fail "maxSlotsPerPod is required: the slots (GPUs) that one pod may have, usually those of a node" -}}
{{- end -}}
{{- with .Values.checkpointStorage -}}
{{- if and (eq .type "azure") .connection_string (or .account_url .credential) -}}
{{- fail "checkpointStorage: connection_string excludes account_url and credential" -}}
{{- end -}}
{{- end -}}
{{- with .Values.initialUserPassword | default .Values.defaultPassword -}}
{{- if lt (len .) 8 }}{{ fail "initialUserPassword must have at least 8 characters" }}{{ end -}}
{{- if not (regexMatch "[A-Z]" .) }}{{ fail "initialUserPassword must include an uppercase letter" }}{{ end -}}
{{- if not (regexMatch "[a-z]" .) }}{{ fail "initialUserPassword must include a lowercase letter" }}{{ end -}}
{{- if not (regexMatch "[0-9]" .) }}{{ fail "initialUserPassword must include a number" }}{{ end -}}
{{- end -}}
{{- if and (eq (toString .Values.slotType) "cpu") (not (gt (float64 ((.Values.slotResourceRequests).cpu | default 0)) 0.0)) -}}
{{- fail "slotResourceRequests.cpu is required with slotType cpu: the cores that a slot has, greater than 0, such as 1" -}}
{{- end -}}
{{- if and .Values.launcherOnly (not .Values.nats.external.url) -}}
{{- fail "launcherOnly: nats.external.url is required, the bus of the installation that the pools belong to" -}}
{{- end -}}
{{- if and .Values.launcherOnly (not .Values.clusterId) -}}
{{- fail "launcherOnly: clusterId is required, the id that `det master info` shows" -}}
{{- end -}}
{{- if and .Values.launcherOnly (not .Values.determinedMasterHost) -}}
{{- fail "launcherOnly: determinedMasterHost is required, where tasks reach the api of the installation" -}}
{{- end -}}
{{- if and .Values.launcherOnly (not .Values.logs.url) -}}
{{- fail "launcherOnly: logs.url is required, where tasks reach the log intake of the installation" -}}
{{- end -}}
{{- if and .Values.nats.external.url (not .Values.nats.external.secretName) -}}
{{- fail "nats.external.secretName is required: a Secret with the password of each user of the bus" -}}
{{- end -}}
{{- if and (ne .Values.tls.termination "api") .Values.tlsSecret (not (index .Values .Values.tls.termination).enabled) -}}
{{- fail (printf "tls.termination is %s, but %s.enabled is not true" .Values.tls.termination .Values.tls.termination) -}}
{{- end -}}
{{- with .Values.tls.additionalCa -}}
{{- if and .secretName .configMapName -}}
{{- fail "tls.additionalCa: secretName and configMapName cannot both be given" -}}
{{- end -}}
{{- if not (or .secretName .configMapName) -}}
{{- fail "tls.additionalCa needs secretName or configMapName: what has the certificates" -}}
{{- end -}}
{{- end -}}
{{- with .Values.oidc -}}
{{- if and .clientSecretName (not .clientSecretKey) -}}
{{- fail "oidc.clientSecretKey is required with oidc.clientSecretName: the key of that Secret" -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.db.hostAddress) (or .Values.db.sslMode .Values.db.sslRootCert .Values.db.certResourceName) -}}
{{- fail "db.sslMode, db.sslRootCert and db.certResourceName need db.hostAddress: the PostgreSQL of this chart has no certificate" -}}
{{- end -}}
{{- if .Values.db.certResourceName -}}
{{- if not (has .Values.db.resourceType (list "secret" "configMap")) -}}
{{- fail "db.resourceType must be secret or configMap: where db.certResourceName is found" -}}
{{- end -}}
{{- if not .Values.db.sslRootCert }}{{ fail "db.sslRootCert is required with db.certResourceName: the key of the certificate in it" }}{{ end -}}
{{- end -}}
{{- if not (regexMatch "^[ -~]*$" (.Values.db.servicesPassword | default "")) -}}
{{- fail "db.servicesPassword must be of ASCII characters" -}}
{{- end -}}
{{- include "resolute.checkShared" . -}}
{{- include "resolute.checkBusVolumes" . -}}
{{- with (.Values.security).authz -}}
{{- if and .type (not (has .type (list "basic" "rbac" "permissive"))) -}}
{{- fail (printf "security.authz.type: %s is none of basic, rbac and permissive" .type) -}}
{{- end -}}
{{- end -}}
{{- $seen := dict -}}
{{- range (include "resolute.pools" . | fromJsonArray) -}}
{{- if hasKey $seen .name }}{{ fail (printf "resource pool has a duplicate name: %s" .name) }}{{ end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- if and .Values.monitoring.serviceMonitors .Values.networkPolicy.enabled (kindIs "invalid" .Values.networkPolicy.metricsFrom) (ne (include "resolute.since" .) "before") -}}
{{- fail "networkPolicy.metricsFrom is required with monitoring.serviceMonitors: the peers that Prometheus runs in, such as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]; by default nobody reads metrics" -}}
{{- end -}}
{{- if include "resolute.anyTasksHavePolicies" . }}{{ include "resolute.checkTasksNetwork" . }}{{ end -}}
{{- range .Values.launcher.remotePools -}}
{{- if not (hasKey $seen .) }}{{ fail (printf "launcher.remotePools: there is no resource pool named %q" .) }}{{ end -}}
{{- end -}}
{{- end -}}

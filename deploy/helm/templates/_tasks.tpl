{{/* Where tasks run, and what this release was installed as: answers of the cluster are kept in the values while rendering. */}}

{{/* What the Secret of generated values holds, decoded, as JSON; empty where there is none, or the cluster cannot be asked. */}}
{{- define "resolute.kept" -}}
{{- if not .Values.tasks }}{{ $_ := set .Values "tasks" dict }}{{ end -}}
{{- if not (hasKey .Values.tasks "_kept") -}}
{{- $kept := dict -}}
{{- range $key, $value := (lookup "v1" "Secret" .Release.Namespace (printf "resolute-generated-%s" .Release.Name)).data }}
{{- $_ := set $kept $key (b64dec $value) -}}
{{- end -}}
{{- $_ := set .Values.tasks "_kept" $kept -}}
{{- end -}}
{{- toJson .Values.tasks._kept -}}
{{- end -}}

{{/* "before" for a release that a chart without tasks.namespace installed, whose defaults stay what they were. */}}
{{- define "resolute.since" -}}
{{- $kept := include "resolute.kept" . | fromJson -}}
{{- if $kept }}{{ get $kept "since" | default "before" }}{{ else }}own-namespace{{ end -}}
{{- end -}}

{{/* The namespace of tasks whose pool and workspace say nothing; empty where no pool needs one. */}}
{{- define "resolute.defaultNamespace" -}}
{{- if not .Values.tasks }}{{ $_ := set .Values "tasks" dict }}{{ end -}}
{{- if not (hasKey .Values.tasks "_namespace") }}{{ $_ := set .Values.tasks "_namespace" (include "resolute.findTasksNamespace" . | trim) }}{{ end -}}
{{- .Values.tasks._namespace -}}
{{- end -}}

{{- define "resolute.findTasksNamespace" -}}
{{- $old := (.Values.resourceManager).defaultNamespace -}}
{{- if and .Values.tasks.namespace $old (ne .Values.tasks.namespace $old) -}}
{{- fail (printf "tasks.namespace is %s, but resourceManager.defaultNamespace is %s: give one of them" .Values.tasks.namespace $old) -}}
{{- end -}}
{{- $kept := include "resolute.kept" . | fromJson -}}
{{- if or .Values.tasks.namespace $old -}}
{{ .Values.tasks.namespace | default $old }}
{{- else if $kept -}}
{{ get $kept "tasks-namespace" | default .Release.Namespace }}
{{- else if not (include "resolute.needsTasksNamespace" .) -}}
{{ .Release.Namespace }}
{{- else if lookup "v1" "Namespace" "" "kube-system" -}}
{{ ternary .Release.Name (printf "%s-%s" .Release.Namespace .Release.Name) (eq .Release.Name .Release.Namespace) | trunc 57 | trimSuffix "-" }}-tasks
{{- else -}}
{{- fail (printf "tasks.namespace is required where the cluster cannot be asked while rendering (helm template, Argo CD): the namespace that tasks run in, such as %s-tasks; for an installation whose tasks run beside it so far, %s" .Release.Name .Release.Namespace) -}}
{{- end -}}
{{- end -}}

{{- define "resolute.needsTasksNamespace" -}}
{{- range .Values.resourcePools | default (list (dict "pool_name" "default")) -}}
{{- if not (or .kubernetes_namespace (has .pool_name $.Values.launcher.remotePools)) }}yes{{ end -}}
{{- end -}}
{{- end -}}

{{/* Whether the chart makes the namespace of tasks. */}}
{{- define "resolute.makesTasksNamespace" -}}
{{- $name := include "resolute.defaultNamespace" . -}}
{{- $given := and (.Values.resourceManager).defaultNamespace (not .Values.tasks.namespace) -}}
{{- $wanted := ternary (not $given) .Values.tasks.createNamespace (kindIs "invalid" .Values.tasks.createNamespace) -}}
{{- if and $wanted $name (ne $name .Release.Namespace) (include "resolute.needsTasksNamespace" .) }}yes{{ end -}}
{{- end -}}

{{/* Where tasks ran before, as a JSON array: as given, and as noted, until no Job of this installation is left there. */}}
{{- define "resolute.formerNamespaces" -}}
{{- if not (hasKey .Values.tasks "_former") -}}
{{- $kept := include "resolute.kept" . | fromJson -}}
{{- $now := include "resolute.defaultNamespace" . -}}
{{- $former := .Values.tasks.formerNamespaces | default list -}}
{{- if $kept -}}
{{- $last := get $kept "tasks-namespace" | default .Release.Namespace -}}
{{- $former = append $former $last -}}
{{- range get $kept "tasks-former-namespaces" | default "" | splitList "," | compact -}}
{{- $in := . -}}
{{- range (lookup "batch/v1" "Job" . "").items -}}
{{- if eq (get (.metadata.labels | default dict) "resolute/cluster-id") (get $kept "cluster-id") }}{{ $former = append $former $in }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set .Values.tasks "_former" (without (uniq $former) $now) -}}
{{- end -}}
{{- toJson .Values.tasks._former -}}
{{- end -}}

{{/* Level of the Pod Security Standards that the namespace of tasks enforces: none where an administrator's own defaults, or
     checkpoints in a directory of the nodes, need what baseline refuses. */}}
{{- define "resolute.tasksPodSecurity" -}}
{{- if not (kindIs "invalid" .Values.tasks.podSecurity) -}}
{{ .Values.tasks.podSecurity }}
{{- else if ne .Values.checkpointStorage.type "shared_fs" -}}
{{- $defaults := list (.Values.taskContainerDefaults | default dict) (.Values.resourcePools | default list) | toJson -}}
{{- $needs := regexMatch "\"(hostPath|host_path|hostNetwork|hostPID|hostIPC|hostPort|privileged|bindMounts|bind_mounts|devices|addCapabilities|add_capabilities|capabilities|procMount|sysctls)\":" $defaults -}}
{{- if not (or $needs (regexMatch "\"(networkMode|network_mode)\":\"host\"" $defaults)) }}baseline{{ end -}}
{{- end -}}
{{- end -}}

{{/* Pods of a part, as peers of policies that launchers make: root, part. Both kinds of labels: no upgrade and no rollback
     changes the policy of a task that runs. */}}
{{- define "resolute.podsAnywhere" -}}
{{- $namespace := dict "matchLabels" (dict "kubernetes.io/metadata.name" .root.Release.Namespace) -}}
{{- $peers := list -}}
{{- range list "resolute.ownLabels" "resolute.formerLabels" -}}
{{- $peers = append $peers (dict "namespaceSelector" $namespace "podSelector" (dict "matchLabels" (include . $ | fromYaml))) -}}
{{- end -}}
{{- toJson $peers -}}
{{- end -}}

{{/* Whether launchers make network policies for the tasks of a pool: root, pool. */}}
{{- define "resolute.tasksHavePolicies" -}}
{{- $asked := (.root.Values.networkPolicy.tasks).enabled -}}
{{- if not (kindIs "invalid" $asked) -}}
{{- if $asked }}yes{{ end -}}
{{- else if and .root.Values.networkPolicy.enabled (lt (int .pool.manager) 0) (eq .pool.namespace (include "resolute.defaultNamespace" .root)) -}}
{{ include "resolute.makesTasksNamespace" .root }}
{{- end -}}
{{- end -}}

{{- define "resolute.anyTasksHavePolicies" -}}
{{- range include "resolute.pools" . | fromJsonArray -}}
{{- if not .remote }}{{ include "resolute.tasksHavePolicies" (dict "root" $ "pool" .) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Ranges of addresses that tasks do not reach, as a JSON array. */}}
{{- define "resolute.closedRanges" -}}
{{- $closed := (.Values.networkPolicy.tasks).closed | default dict -}}
{{- $ranges := list -}}
{{- range list "pods" "services" "nodes" "apiServer" }}{{ $ranges = concat $ranges (get $closed . | default list) }}{{ end -}}
{{- if not $ranges }}{{ $ranges = list "10.0.0.0/8" "172.16.0.0/12" "192.168.0.0/16" "100.64.0.0/10" "fc00::/7" }}{{ end -}}
{{- concat $ranges ($closed.linkLocal | default (list "169.254.0.0/16" "fe80::/10")) | uniq | toJson -}}
{{- end -}}

{{/* Addresses outside of the release that tasks use: a JSON array of value, url. */}}
{{- define "resolute.addressesOfTasks" -}}
{{- $found := list -}}
{{- with .Values.checkpointStorage.endpointUrl }}{{ $found = append $found (dict "value" "checkpointStorage.endpointUrl" "url" .) }}{{ end -}}
{{- if .Values.determinedMasterHost }}{{ $found = append $found (dict "value" "determinedMasterHost" "url" (include "resolute.masterUrl" .)) }}{{ end -}}
{{- with .Values.logs.url }}{{ $found = append $found (dict "value" "logs.url" "url" .) }}{{ end -}}
{{- toJson $found -}}
{{- end -}}

{{/* Further egress rules of tasks, as a JSON array: what is given, metadata addresses, and addresses that values name. */}}
{{- define "resolute.tasksEgress" -}}
{{- $policy := .Values.networkPolicy.tasks | default dict -}}
{{- $rules := $policy.extraEgress | default list -}}
{{- with $policy.metadataAddresses -}}
{{- $blocks := list -}}
{{- range . }}{{ $blocks = append $blocks (dict "ipBlock" (dict "cidr" (ternary . (printf "%s/32" .) (contains "/" .)))) }}{{ end -}}
{{- $rules = append $rules (dict "to" $blocks) -}}
{{- end -}}
{{- range include "resolute.addressesOfTasks" . | fromJsonArray -}}
{{- $host := (urlParse .url).hostname -}}
{{- if regexMatch "^[0-9]+(\\.[0-9]+){3}$" $host -}}
{{- $port := regexFind ":[0-9]+(/|$)" .url | trimPrefix ":" | trimSuffix "/" | default (ternary "443" "80" (hasPrefix "https" .url)) | int -}}
{{- $rules = append $rules (dict "to" (list (dict "ipBlock" (dict "cidr" (printf "%s/32" $host)))) "ports" (list (dict "port" $port "protocol" "TCP"))) -}}
{{- end -}}
{{- end -}}
{{- toJson $rules -}}
{{- end -}}

{{/* What has to be said before tasks are closed in, because a wrong guess would stop or expose them. */}}
{{- define "resolute.checkTasksNetwork" -}}
{{- $policy := .Values.networkPolicy.tasks | default dict -}}
{{- $storage := .Values.checkpointStorage -}}
{{- $keyless := or (eq $storage.type "gcs") (and (eq $storage.type "s3") (not $storage.accessKey)) (and (eq $storage.type "azure") (not $storage.connection_string) (not $storage.credential)) -}}
{{- if and $keyless (kindIs "invalid" $policy.metadataAddresses) -}}
{{- fail (printf "networkPolicy.tasks.metadataAddresses is required: checkpointStorage of type %s has no keys in the values. Where tasks get them from the cloud's metadata service, give its address, such as [169.254.169.254]: every task can then act as the account that it hands out. Where tasks have keys by other means, give []" $storage.type) -}}
{{- end -}}
{{- if kindIs "invalid" $policy.extraEgress -}}
{{- range include "resolute.addressesOfTasks" . | fromJsonArray -}}
{{- $host := (urlParse .url).hostname -}}
{{- $inside := or (regexMatch "\\.(svc|internal|local)(\\.|$)" $host) (not (contains "." $host)) -}}
{{- if and $inside (not (regexMatch "^[0-9.]+$" $host)) -}}
{{- fail (printf "networkPolicy.tasks.extraEgress is required: %s names %s, which is inside of the cluster or of its network, and tasks reach nothing there. Give a rule that opens it, such as [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: storage}}}], ports: [{port: 9000}]}], or [] where its address is outside of networkPolicy.tasks.closed" .value $host) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (or .Values.launcherOnly (.Values.resourceManager).internalTaskGateway) (kindIs "invalid" $policy.extraIngress) -}}
{{- fail "networkPolicy.tasks.extraIngress is required: tasks are reached through a Gateway, or by an api elsewhere. Give a rule for where those connections come from, such as [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: gateways}}}]}], or [] where nobody connects to tasks" -}}
{{- end -}}
{{- end -}}

{{/* Who reads metrics, as a JSON array of peers; nobody, or every namespace in releases that were so before. */}}
{{- define "resolute.metricsFrom" -}}
{{- if kindIs "invalid" .Values.networkPolicy.metricsFrom -}}
{{- if eq (include "resolute.since" .) "before" }}[{"namespaceSelector": {}}]{{ else }}[]{{ end -}}
{{- else -}}
{{- toJson .Values.networkPolicy.metricsFrom -}}
{{- end -}}
{{- end -}}

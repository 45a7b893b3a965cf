{{/* The cluster configuration (master.yaml) from the values. Keys are set only when the value is not null, so that false
     and 0 stay what they are. What has no effect in it here (database, log level, retention) becomes settings of the
     services. */}}

{{- define "resolute.clusterConfig" -}}
{{- $config := include "resolute.launcherConfig" . | fromYaml -}}
{{- $_ := set $config "checkpoint_storage" (include "resolute.checkpointStorage" . | fromYaml) -}}
{{- $more := list -}}
{{- range .Values.additional_resource_managers }}{{ $more = concat $more .resource_pools }}{{ end -}}
{{- $_ := set $config "resource_pools" (concat $config.resource_pools $more) -}}
{{- with include "resolute.security" . | fromYaml }}{{ $_ := set $config "security" . }}{{ end -}}
{{- if not (kindIs "invalid" .Values.launchError) }}{{ $_ := set $config "launch_error" .Values.launchError }}{{ end -}}
{{- with .Values.featureSwitches }}{{ $_ := set $config "feature_switches" . }}{{ end -}}
{{- with .Values.reservedPorts }}{{ $_ := set $config "reserved_ports" . }}{{ end -}}
{{- $webhooks := dict -}}
{{- range $key, $value := .Values.webhooks | default dict }}{{ if $value }}{{ $_ := set $webhooks $key $value }}{{ end }}{{ end -}}
{{- with $webhooks }}{{ $_ := set $config "webhooks" . }}{{ end -}}
{{- with (.Values.tasks).address }}
{{- $main := required "tasks.mainAddress is required with tasks.address: where users find this installation" $.Values.tasks.mainAddress -}}
{{- $_ := set $config "tasks" (dict "address" . "main_address" $main) }}{{ end -}}
{{- with include "resolute.webRoot" . }}{{ $_ := set $config "web" (dict "root" .) }}{{ end -}}
{{- with .Values.scim }}{{ $_ := set $config "scim" (include "resolute.withoutNulls" . | fromJson) }}{{ end -}}
{{- $oidc := dict -}}
{{- range $key, $value := omit (.Values.oidc | default dict) "clientSecretName" "clientSecretKey" -}}
{{- if not (kindIs "invalid" $value) }}{{ $_ := set $oidc (snakecase $key) $value }}{{ end -}}
{{- end -}}
{{- with $oidc }}{{ $_ := set $config "oidc" . }}{{ end -}}
{{- if not (kindIs "invalid" .Values.notebookTimeout) }}{{ $_ := set $config "notebook_timeout" .Values.notebookTimeout }}{{ end -}}
{{- if not (kindIs "invalid" .Values.tensorboardTimeout) }}{{ $_ := set $config "tensorboard_timeout" .Values.tensorboardTimeout }}{{ end -}}
{{- if not (kindIs "invalid" .Values.logOutageWait) }}{{ $_ := set $config "logs" (dict "outage_wait" .Values.logOutageWait) }}{{ end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* What launchers need of it: nothing that opens the storage or says who may log in. */}}
{{- define "resolute.launcherConfig" -}}
{{- $config := dict -}}
{{- with .Values.clusterName }}{{ $_ := set $config "cluster_name" . }}{{ end -}}
{{- $_ := set $config "resource_manager" (include "resolute.resourceManager" . | fromYaml) -}}
{{- $_ := set $config "resource_pools" (.Values.resourcePools | default (list (dict "pool_name" "default"))) -}}
{{- $_ := set $config "task_container_defaults" (include "resolute.taskContainerDefaults" . | fromYaml) -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The configuration for the launchers of an additional resource manager: root, section. */}}
{{- define "resolute.additionalConfig" -}}
{{- $config := include "resolute.launcherConfig" .root | fromYaml -}}
{{- $manager := omit .section.resource_manager "kubeconfig_secret_name" "kubeconfig_secret_value" "kubeconfig_path" "determined_master_host" "determined_master_port" "determined_master_scheme" "determined_master_ip" "master_service_name" -}}
{{- $first := (first .section.resource_pools).pool_name -}}
{{- $manager = merge (deepCopy $manager) (dict "default_compute_resource_pool" $first "default_aux_resource_pool" $first) -}}
{{- $_ := set $config "resource_manager" $manager -}}
{{- $_ := set $config "resource_pools" .section.resource_pools -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "resolute.resourceManager" -}}
{{- $given := .Values.resourceManager | default dict -}}
{{- $manager := dict "type" "kubernetes" "default_namespace" (include "resolute.defaultNamespace" .) "max_slots_per_pod" .Values.maxSlotsPerPod -}}
{{- with $given.clusterName }}{{ $_ := set $manager "cluster_name" . }}{{ end -}}
{{- with $given.metadata }}{{ $_ := set $manager "metadata" . }}{{ end -}}
{{- with $given.internalTaskGateway }}{{ $_ := set $manager "internal_task_gateway" . }}{{ end -}}
{{- with $given.scheduler }}{{ $_ := set $manager "scheduler" . }}{{ end -}}
{{- if ne (.Values.slotType | default "gpu") "gpu" -}}
{{- $_ := set $manager "slot_type" .Values.slotType -}}
{{- with .Values.slotResourceRequests }}{{ $_ := set $manager "slot_resource_requests" . }}{{ end -}}
{{- end -}}
{{- if eq (trim (.Values.defaultScheduler | default "")) "coscheduler" }}{{ $_ := set $manager "default_scheduler" "coscheduler" }}{{ end -}}
{{- if $given.noDefaultResourcePools -}}
{{- $_ := set $manager "no_default_resource_pools" true -}}
{{- else -}}
{{- $_ := set $manager "default_aux_resource_pool" (include "resolute.defaultPool" (dict "root" . "given" .Values.defaultAuxResourcePool)) -}}
{{- $_ := set $manager "default_compute_resource_pool" (include "resolute.defaultPool" (dict "root" . "given" .Values.defaultComputeResourcePool)) -}}
{{- end -}}
{{- toYaml $manager -}}
{{- end -}}

{{- define "resolute.taskContainerDefaults" -}}
{{- $given := .Values.taskContainerDefaults | default dict -}}
{{- $images := .Values.defaultImages -}}
{{- $defaults := dict -}}
{{- $snake := dict
  "startupHook" "startup_hook" "networkMode" "network_mode" "dtrainNetworkInterface" "dtrain_network_interface"
  "forcePullImage" "force_pull_image" "cpuPodSpec" "cpu_pod_spec" "gpuPodSpec" "gpu_pod_spec"
  "checkpointGcPodSpec" "checkpoint_gc_pod_spec" "logPolicies" "log_policies" "shmSizeBytes" "shm_size_bytes"
  "registryAuth" "registry_auth" "environmentVariables" "environment_variables" "bindMounts" "bind_mounts"
  "workDir" "work_dir" "preemptionTimeout" "preemption_timeout" "ncclPortRange" "nccl_port_range"
  "glooPortRange" "gloo_port_range" "addCapabilities" "add_capabilities" "dropCapabilities" "drop_capabilities"
  "devices" "devices" -}}
{{- range $value, $key := $snake -}}
{{- if and (hasKey $given $value) (not (kindIs "invalid" (get $given $value))) }}{{ $_ := set $defaults $key (get $given $value) }}{{ end -}}
{{- end -}}
{{- $image := dict -}}
{{- with $given.cpuImage | default $images.cpuImage }}{{ $_ := set $image "cpu" . }}{{ end -}}
{{- with $given.gpuImage | default $images.gpuImage }}{{ $_ := set $image "gpu" . }}{{ end -}}
{{- with $given.rocmImage | default $images.rocmImage }}{{ $_ := set $image "rocm" . }}{{ end -}}
{{- with $image }}{{ $_ := set $defaults "image" . }}{{ end -}}
{{- if .Values.legacyPedlPlacement -}}
{{- range list "cpu_pod_spec" "gpu_pod_spec" -}}
{{- $_ := set $defaults . (include "resolute.pedlPlacement" (get $defaults . | default dict) | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- toYaml $defaults -}}
{{- end -}}

{{/* A pod spec for the nodes that PEDL marked as its own. */}}
{{- define "resolute.pedlPlacement" -}}
{{- $pod := deepCopy . -}}
{{- $spec := $pod.spec | default dict -}}
{{- $_ := set $spec "nodeSelector" (merge (dict "determined.ai/pedl-agent" "present") ($spec.nodeSelector | default dict)) -}}
{{- $toleration := dict "key" "determined.ai/pedl-agent" "operator" "Equal" "value" "present" "effect" "NoSchedule" -}}
{{- $_ := set $spec "tolerations" (append ($spec.tolerations | default list) $toleration) -}}
{{- $_ := set $pod "spec" $spec -}}
{{- toYaml $pod -}}
{{- end -}}

{{- define "resolute.checkpointStorage" -}}
{{- $given := .Values.checkpointStorage -}}
{{- $storage := dict "type" $given.type -}}
{{- $of_type := get (dict
  "shared_fs" (dict "hostPath" "host_path" "containerPath" "container_path" "storagePath" "storage_path" "propagation" "propagation")
  "directory" (dict "containerPath" "container_path")
  "gcs" (dict "bucket" "bucket" "prefix" "prefix")
  "s3" (dict "bucket" "bucket" "prefix" "prefix" "accessKey" "access_key" "secretKey" "secret_key" "endpointUrl" "endpoint_url")
  "azure" (dict "container" "container" "connection_string" "connection_string" "account_url" "account_url" "credential" "credential")
  ) $given.type -}}
{{- $saved := dict "saveExperimentBest" "save_experiment_best" "saveTrialBest" "save_trial_best" "saveTrialLatest" "save_trial_latest" -}}
{{- range $value, $key := merge $of_type $saved -}}
{{- if and (hasKey $given $value) (not (kindIs "invalid" (get $given $value))) }}{{ $_ := set $storage $key (get $given $value) }}{{ end -}}
{{- end -}}
{{- toYaml $storage -}}
{{- end -}}

{{- define "resolute.security" -}}
{{- $given := include "resolute.withoutNulls" (.Values.security | default dict) | fromJson -}}
{{- $security := dict -}}
{{- with $given.defaultTask }}{{ $_ := set $security "default_task" . }}{{ end -}}
{{- with $given.authz }}{{ $_ := set $security "authz" . }}{{ end -}}
{{- with $given.token -}}
{{- $token := dict -}}
{{- range $value, $key := dict "maxLifespanDays" "max_lifespan_days" "defaultLifespanDays" "default_lifespan_days" "inTasks" "in_tasks" -}}
{{- range list $value $key -}}
{{- if and (hasKey $given.token .) (not (kindIs "invalid" (get $given.token .))) }}{{ $_ := set $token $key (get $given.token .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $_ := set $security "token" $token -}}
{{- end -}}
{{- with $given.ssh }}{{ $_ := set $security "ssh" . }}{{ end -}}
{{- $_ := set $security "release_namespace" .Release.Namespace -}}
{{- $_ := set $security "pod_spec" ($given.podSpec | default (ternary "warn" "baseline" (eq (include "resolute.since" .) "before"))) -}}
{{- with $given.podFields }}{{ $_ := set $security "pod_fields" . }}{{ end -}}
{{- with $given.hostPaths }}{{ $_ := set $security "host_paths" . }}{{ end -}}
{{- with $given.storageAddresses }}{{ $_ := set $security "storage_addresses" . }}{{ end -}}
{{- with $given.references }}{{ $_ := set $security "references" . }}{{ end -}}
{{- if not (kindIs "invalid" $given.podLabels) }}{{ $_ := set $security "pod_labels" $given.podLabels }}{{ end -}}
{{- if eq (include "resolute.apiSpeaksTls" .) "true" -}}
{{- $_ := set $security "tls" (dict "cert" "/etc/resolute/secrets/tls/tls.crt" "key" "/etc/resolute/secrets/tls/tls.key") -}}
{{- end -}}
{{- toYaml $security -}}
{{- end -}}

{{/* A mapping without the keys that are left open, at any depth, as JSON. */}}
{{- define "resolute.withoutNulls" -}}
{{- $kept := dict -}}
{{- range $key, $value := . -}}
{{- if kindIs "map" $value -}}
{{- with include "resolute.withoutNulls" $value | fromJson }}{{ $_ := set $kept $key . }}{{ end -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $kept $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $kept -}}
{{- end -}}

{{- define "resolute.apiSpeaksTls" -}}
{{- if and .Values.tlsSecret (eq .Values.tls.termination "api") }}true{{ else }}false{{ end -}}
{{- end -}}

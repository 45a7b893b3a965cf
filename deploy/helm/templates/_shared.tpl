{{/* Objects whose name is the same in every installation of a cluster, because pod specs of users name them. Whichever release
     comes first makes them and they stay when it is uninstalled; others use them as they are. */}}

{{/* Whether this release makes an object of that kind: create (true, false, or null to ask the cluster), root, apiVersion,
     kind, namespace, name. Where the cluster cannot be asked, null makes it. */}}
{{- define "resolute.makesShared" -}}
{{- if kindIs "bool" .create -}}
{{- if .create }}true{{ end -}}
{{- else if not (include "resolute.sharedOwner" .) -}}
true
{{- end -}}
{{- end -}}

{{/* Who else has made the object, in words; empty where there is none, or it is of this release. */}}
{{- define "resolute.sharedOwner" -}}
{{- with lookup .apiVersion .kind .namespace .name -}}
{{- $of := .metadata.annotations | default dict -}}
{{- $release := get $of "meta.helm.sh/release-name" -}}
{{- $namespace := get $of "meta.helm.sh/release-namespace" -}}
{{- if not $release -}}
not of a release of Helm
{{- else if or (ne $release $.root.Release.Name) (ne $namespace $.root.Release.Namespace) -}}
of the release {{ $release }} in {{ $namespace }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Names of the priority classes with their values, as JSON; that of placeholders only where a pool grows with it. */}}
{{- define "resolute.priorityClasses" -}}
{{- $classes := dict "determined-system-priority" 1000000 "determined-medium-priority" 50 -}}
{{- range .Values.resourcePools -}}
{{- if and .growth (not (.growth).priority_class) -}}
{{- $_ := set $classes "determined-placeholder-priority" -10 -}}
{{- end -}}
{{- end -}}
{{- toJson $classes -}}
{{- end -}}

{{- define "resolute.usesCoscheduler" -}}
{{- if and (eq (trim (.Values.defaultScheduler | default "")) "coscheduler") (not .Values.launcherOnly) }}true{{ end -}}
{{- end -}}

{{- define "resolute.makesCoscheduler" -}}
{{- if include "resolute.usesCoscheduler" . -}}
{{- include "resolute.makesShared" (dict "root" . "create" (.Values.coscheduler).create "apiVersion" "apps/v1" "kind" "Deployment" "namespace" "kube-system" "name" "coscheduler") -}}
{{- end -}}
{{- end -}}

{{/* Refuses a release that is told not to make what it needs and what nobody else has made. */}}
{{- define "resolute.checkShared" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" -}}
{{- if and .Values.createNonNamespacedObjects (eq (toString (.Values.priorityClasses).create) "false") -}}
{{- range $name, $value := include "resolute.priorityClasses" . | fromJson -}}
{{- if not (lookup "scheduling.k8s.io/v1" "PriorityClass" "" $name) -}}
{{- fail (printf "priorityClasses.create is false, but the cluster has no PriorityClass %s: make it (kubectl create priorityclass %s --value=%d), leave priorityClasses.create out, or set createNonNamespacedObjects to false, and services have no priority class" $name $name (int $value)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (include "resolute.usesCoscheduler" .) (eq (toString (.Values.coscheduler).create) "false") (not (lookup "apps/v1" "Deployment" "kube-system" "coscheduler")) -}}
{{- fail "coscheduler.create is false, but there is no Deployment coscheduler in kube-system, and pods of tasks would wait for it: leave coscheduler.create out, or leave defaultScheduler out" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the notes say of objects that another release made: a JSON array of sentences. */}}
{{- define "resolute.sharedNotes" -}}
{{- $notes := list -}}
{{- if .Values.createNonNamespacedObjects -}}
{{- range $name, $_ := include "resolute.priorityClasses" . | fromJson -}}
{{- $found := dict "root" $ "create" ($.Values.priorityClasses).create "apiVersion" "scheduling.k8s.io/v1" "kind" "PriorityClass" "namespace" "" "name" $name -}}
{{- with include "resolute.sharedOwner" $found -}}
{{- $notes = append $notes (printf "PriorityClass %s: it is %s, and is used as it is." $name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if include "resolute.usesCoscheduler" . -}}
{{- with include "resolute.sharedOwner" (dict "root" . "apiVersion" "apps/v1" "kind" "Deployment" "namespace" "kube-system" "name" "coscheduler") -}}
{{- $notes = append $notes (printf "Deployment coscheduler in kube-system: it is %s, and is used as it is." .) -}}
{{- end -}}
{{- end -}}
{{- toJson $notes -}}
{{- end -}}

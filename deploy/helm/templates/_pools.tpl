{{/* Resource pools: those of this cluster and those of additional resource managers, as a JSON array of
     name, slug (for names of objects), token (for subjects of the bus), namespace, manager (index, -1 for this
     cluster's), remote (its launcher is installed elsewhere), config (key of its configuration). */}}
{{- define "resolute.pools" -}}
{{- $root := . -}}
{{- $pools := list -}}
{{- range .Values.resourcePools | default (list (dict "pool_name" "default")) -}}
{{- $namespace := .kubernetes_namespace | default (include "resolute.defaultNamespace" $root) -}}
{{- $pools = append $pools (dict "name" .pool_name "namespace" $namespace "manager" -1 "config" "master.yaml" "remote" (has .pool_name $root.Values.launcher.remotePools)) -}}
{{- end -}}
{{- range $index, $section := .Values.additional_resource_managers -}}
{{- $manager := $section.resource_manager -}}
{{- range $section.resource_pools -}}
{{- $namespace := .kubernetes_namespace | default $manager.default_namespace | default "default" -}}
{{- $pools = append $pools (dict "name" .pool_name "namespace" $namespace "manager" $index "config" (printf "master-%d.yaml" $index) "remote" (has .pool_name $root.Values.launcher.remotePools)) -}}
{{- end -}}
{{- end -}}
{{- range $pools -}}
{{- $_ := set . "slug" (include "resolute.slug" .name) -}}
{{- $_ := set . "token" (include "resolute.token" .name) -}}
{{- end -}}
{{- toJson $pools -}}
{{- end -}}

{{/* The pool of tasks that name none: as given, else the one named default, else the first. */}}
{{- define "resolute.defaultPool" -}}
{{- $names := list -}}
{{- range include "resolute.pools" .root | fromJsonArray }}{{ $names = append $names .name }}{{ end -}}
{{- if .given }}{{ .given }}{{ else if has "default" $names }}default{{ else }}{{ first $names }}{{ end -}}
{{- end -}}

{{/* The namespaces where tasks of this cluster run, and who launches there: a JSON object, namespace -> slugs. */}}
{{- define "resolute.namespaces" -}}
{{- $found := dict -}}
{{- $extra := .Values.launcher.namespaces -}}
{{- $default := include "resolute.defaultNamespace" . -}}
{{- $former := include "resolute.formerNamespaces" . | fromJsonArray -}}
{{- range include "resolute.pools" . | fromJsonArray -}}
{{- if and (eq (int .manager) -1) (not .remote) -}}
{{- $slug := .slug -}}
{{- $ours := prepend $extra .namespace -}}
{{- if eq .namespace $default }}{{ $ours = concat $ours $former }}{{ end -}}
{{- range uniq $ours -}}
{{- $_ := set $found . (append (get $found . | default list) $slug) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* A quantity of storage such as 20Gi in bytes, to compare it. */}}
{{- define "resolute.storageBytes" -}}
{{- $given := toString . -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 -}}
{{- mulf (regexFind "^[0-9.]+([eE][0-9]+)?" $given | float64) (get $units (regexReplaceAll "^[0-9.]+([eE][0-9]+)?" $given "") | default 1 | float64) | int64 -}}
{{- end -}}

{{/* Refuses other volumes for the servers of the bus than those that they have, before anything is changed, and says how they
     grow: a StatefulSet takes no other claims (https://kubernetes.io/docs/concepts/workloads/controllers/statefulset). Only
     known where the cluster is asked. */}}
{{- define "resolute.checkBusVolumes" -}}
{{- if not (or .Values.nats.external.url .Values.launcherOnly) -}}
{{- $app := include "resolute.app" (dict "root" . "part" "nats") -}}
{{- $live := (lookup "apps/v1" "StatefulSet" .Release.Namespace $app).spec | default dict -}}
{{- range $live.volumeClaimTemplates | default list -}}
{{- if eq .metadata.name "data" -}}
{{- $has := .spec.resources.requests.storage -}}
{{- $wanted := toString $.Values.nats.storageSize -}}
{{- $class := .spec.storageClassName | default "" -}}
{{- if ne ($.Values.nats.storageClassName | default "") $class -}}
{{- fail (printf "nats.storageClassName: the volumes of the bus are of the class %q, and stay on it: leave the value as it was" $class) -}}
{{- end -}}
{{- $hasBytes := include "resolute.storageBytes" $has | int64 -}}
{{- $wantedBytes := include "resolute.storageBytes" $wanted | int64 -}}
{{- if lt $wantedBytes $hasBytes -}}
{{- fail (printf "nats.storageSize: the volumes of the bus have %s, and volumes do not become smaller: give %s" $has $has) -}}
{{- else if gt $wantedBytes $hasBytes -}}
{{- include "resolute.refuseLargerVolumes" (dict "root" $ "app" $app "has" $has "wanted" $wanted "replicas" (int $live.replicas)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* root, app, has, wanted, replicas */}}
{{- define "resolute.refuseLargerVolumes" -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $claims := list -}}
{{- range $number := until .replicas -}}
{{- $name := printf "data-%s-%d" $.app $number -}}
{{- $claims = append $claims $name -}}
{{- with lookup "v1" "PersistentVolumeClaim" $namespace $name -}}
{{- $class := .spec.storageClassName | default "" -}}
{{- $found := lookup "storage.k8s.io/v1" "StorageClass" "" $class -}}
{{- if not (and $found $found.allowVolumeExpansion) -}}
{{- fail (printf "nats.storageSize: the claim %s has %s and cannot grow, because the StorageClass %q does not have allowVolumeExpansion: give %s, or let the class expand volumes if its storage can" $name $.has $class $.has) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- fail (printf `nats.storageSize: the volumes of the bus have %s, and a StatefulSet does not take another size. Nothing is changed yet. Enlarge the claims and remove the StatefulSet without its pods, which go on, then repeat this command:

  for claim in %s; do
    kubectl -n %s patch persistentvolumeclaim $claim --patch '{"spec": {"resources": {"requests": {"storage": "%s"}}}}'
  done
  kubectl -n %s delete statefulset %s --cascade=orphan
` .has (join " " $claims) $namespace .wanted $namespace .app) -}}
{{- end -}}

{{/* By which labels Services, network policies, disruption budgets and monitors select pods of a release.

     Every pod bears two kinds. The former ones (app, release, determined-system) are what the selectors of workloads have,
     which cannot be changed, and what people's commands name. Those of our own domain are "own"; no pod of a user bears any
     of them (libs/podspec/reserved_labels.py). Pods of releases before there were own labels bear the former only, so own
     labels select once no such pod is left:

     installation                              own: there are no pods yet
     upgrade from a release without them       former: pods of both releases are selected while one replaces the other
     the next upgrade                          own, if those pods have all been replaced; otherwise former
     each later upgrade                        own, also while pods are being replaced: all of them bear both kinds
     rollback                                  as the revision that it returns to was rendered. If its pods have no own
                                               labels, it was former, by which the newer pods are selected too. If it was
                                               own, all pods bear both kinds, unless the release went back to one without
                                               own labels in between: return from there by an upgrade
     upgrade to a chart without own labels     former, but the Job of its migration is let through to the database only
                                               if podSelectors was former before: return by a rollback
     helm template, Argo CD                    as podSelectors says, which is former unless given

     What was rendered is noted in the Secret of generated values, which a rollback sets back with everything else. */}}

{{/* Labels of our own domain, which all pods of a release bear: root, part. */}}
{{- define "resolute.ownLabels" -}}
resolute/release: {{ .root.Release.Name }}
resolute/component: {{ .part }}
{{- end -}}

{{/* Labels of before: root, part. */}}
{{- define "resolute.formerLabels" -}}
release: {{ .root.Release.Name }}
determined-system: {{ .part }}
{{- end -}}

{{/* Labels that select the pods of a part: root, part, app (the former label of a Service or budget), pool (its slug). */}}
{{- define "resolute.selector" -}}
{{- if eq (include "resolute.podSelectors" .root) "own" -}}
{{ include "resolute.ownLabels" . }}
{{- with .pool }}
resolute/pool: {{ . }}
{{- end }}
{{- else if .app -}}
app: {{ .app }}
{{- else -}}
{{ include "resolute.formerLabels" . }}
{{- end -}}
{{- end -}}

{{/* "own" or "former". */}}
{{- define "resolute.podSelectors" -}}
{{- $_ := include "resolute.kept" . -}}
{{- if not (hasKey .Values.tasks "_podSelectors") }}{{ $_ := set .Values.tasks "_podSelectors" (include "resolute.findPodSelectors" . | trim) }}{{ end -}}
{{- .Values.tasks._podSelectors -}}
{{- end -}}

{{- define "resolute.findPodSelectors" -}}
{{- $asked := .Values.podSelectors | default "auto" -}}
{{- $live := include "resolute.liveWorkloads" . | fromJson -}}
{{- $without := include "resolute.workloadsWithoutOwnLabels" . | fromJsonArray -}}
{{- if and (eq $asked "own") $without -}}
{{- fail (printf "podSelectors is own, but there are pods of %s without the labels resolute/release and resolute/component: upgrade with podSelectors auto or former first, and wait until these pods are replaced" (join ", " $without)) -}}
{{- else if eq $asked "own" -}}
own
{{- else if or (eq $asked "former") $without -}}
former
{{- else if $live -}}
own
{{- else if lookup "v1" "ServiceAccount" .Release.Namespace "default" -}}
own
{{- else if lookup "v1" "Namespace" "" "kube-system" -}}
{{- /* The cluster can be asked; the namespace of the release is only to be made. */ -}}
own
{{- else -}}
former
{{- end -}}
{{- end -}}

{{/* Workloads of the release that are live, as a JSON object: name -> whether its pods bear own labels: all of them, those
     that it makes from now on (new), or none. */}}
{{- define "resolute.liveWorkloads" -}}
{{- $_ := include "resolute.kept" . -}}
{{- if not (hasKey .Values.tasks "_liveWorkloads") -}}
{{- $release := .Release.Name -}}
{{- $deployments := list (printf "determined-master-deployment-%s" $release) (printf "resolute-scheduler-%s" $release) (printf "resolute-logs-%s" $release) -}}
{{- range include "resolute.pools" . | fromJsonArray -}}
{{- if not .remote }}{{ $deployments = append $deployments (printf "resolute-launcher-%s-%s" .slug $release) }}{{ end -}}
{{- end -}}
{{- $statefulSets := list (printf "resolute-nats-%s" $release) (printf "determined-db-deployment-%s" $release) -}}
{{- $found := dict -}}
{{- range $kind, $names := dict "Deployment" $deployments "StatefulSet" $statefulSets -}}
{{- range $name := $names -}}
{{- with lookup "apps/v1" $kind $.Release.Namespace $name -}}
{{- $status := .status | default dict -}}
{{- $labels := dig "template" "metadata" "labels" dict .spec -}}
{{- $isSettled := and (ge (int64 ($status.observedGeneration | default 0)) (int64 .metadata.generation)) (eq (int ($status.replicas | default 0)) (int ($status.updatedReplicas | default 0))) -}}
{{- $_ := set $found $name (ternary (ternary "all" "new" $isSettled) "none" (hasKey $labels "resolute/component")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set .Values.tasks "_liveWorkloads" $found -}}
{{- end -}}
{{- toJson .Values.tasks._liveWorkloads -}}
{{- end -}}

{{/* Names of those of which pods may live without own labels, as a JSON array. While own labels select, pods that are being
     replaced have them. */}}
{{- define "resolute.workloadsWithoutOwnLabels" -}}
{{- $kept := include "resolute.kept" . | fromJson -}}
{{- $enough := ternary (list "all" "new") (list "all") (eq (get $kept "pod-selectors") "own") -}}
{{- $without := list -}}
{{- range $name, $which := include "resolute.liveWorkloads" . | fromJson -}}
{{- if not (has $which $enough) }}{{ $without = append $without $name }}{{ end -}}
{{- end -}}
{{- toJson $without -}}
{{- end -}}

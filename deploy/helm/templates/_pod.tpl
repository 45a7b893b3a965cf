{{/* What the pods of all services have in common. */}}

{{/* The security context of the restricted Pod Security Standard. */}}
{{- define "resolute.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .user | default 10001 }}
runAsGroup: {{ .user | default 10001 }}
fsGroup: {{ .user | default 10001 }}
# Otherwise everything on a volume would become writable for the group with each start, which PostgreSQL refuses.
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "resolute.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Where pods of a part go: root, group, app. Values of the part come before those of all (master...). */}}
{{- define "resolute.placement" -}}
{{- with .group.nodeSelector | default .root.Values.masterNodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .group.tolerations | default .root.Values.masterTolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .group.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- if .group.topologySpreadConstraints }}
{{- toYaml .group.topologySpreadConstraints | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app: {{ .app }}}}
{{- end }}
{{- with .group.priorityClassName | default (ternary "determined-system-priority" "" .root.Values.createNonNamespacedObjects) }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.imagePullSecretName }}
imagePullSecrets: [{name: {{ . }}}]
{{- end }}
{{- end -}}

{{/* Requests and limits: the values of 0.38.1 (cpuRequest, ...) before those of the group. */}}
{{- define "resolute.resources" -}}
{{- $resources := deepCopy (.resources | default dict) -}}
{{- range $kind, $found := dict "requests" (dict "cpu" .cpuRequest "memory" .memRequest) "limits" (dict "cpu" .cpuLimit "memory" .memLimit) -}}
{{- range $name, $value := $found -}}
{{- if $value }}{{ $_ := set $resources $kind (merge (dict $name (toString $value)) (get $resources $kind | default dict)) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* Variables of every service: root, group. */}}
{{- define "resolute.env" -}}
{{- $levels := dict "trace" "debug" "debug" "debug" "info" "info" "warn" "warning" "warning" "warning" "error" "error" "fatal" "error" -}}
- {name: RESOLUTE_TELEMETRY__STATUS_PORT, value: "9090"}
- {name: RESOLUTE_TELEMETRY__LOG_LEVEL, value: {{ get $levels (.root.Values.logLevel | default "info") | quote }}}
{{- with .root.Values.traces.endpoint }}
- {name: RESOLUTE_TELEMETRY__TRACES_ENDPOINT, value: {{ . | quote }}}
- {name: RESOLUTE_TELEMETRY__TRACES_RATIO, value: {{ $.root.Values.traces.ratio | quote }}}
{{- end }}
{{- with .group.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Variables of services that use the database: root; secret and key (where the URL is) unless it is that of the services. */}}
{{- define "resolute.databaseEnv" -}}
{{- $ofServices := ternary "services-database-url" "database-url" (ne (include "resolute.servicesRole" .root) "") -}}
- name: RESOLUTE_DATABASE__URL
  valueFrom: {secretKeyRef: {name: {{ .secret | default (printf "resolute-generated-%s" .root.Release.Name) }}, key: {{ .key | default $ofServices }}}}
{{- with .root.Values.db.sslMode }}
- {name: PGSSLMODE, value: {{ . | quote }}}
{{- end }}
{{- with .root.Values.db.sslRootCert }}
- {name: PGSSLROOTCERT, value: {{ printf "/etc/resolute/secrets/database/%s" . | quote }}}
{{- end }}
{{- end -}}

{{- define "resolute.databaseMounts" -}}
{{- if .Values.db.certResourceName }}
- {name: database-certificate, mountPath: /etc/resolute/secrets/database, readOnly: true}
{{- end }}
{{- end -}}

{{- define "resolute.databaseVolumes" -}}
{{- with .Values.db.certResourceName }}
- name: database-certificate
  {{- if eq $.Values.db.resourceType "secret" }}
  secret: {secretName: {{ . }}}
  {{- else }}
  configMap: {name: {{ . }}}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "resolute.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: status}
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  httpGet: {path: /healthz, port: status}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: status}
  periodSeconds: 5
  timeoutSeconds: 5
  # What a service needs, such as the database, is away for all of its pods at once. While a pod of that is replaced, the
  # api still answers what needs none, and tells clients when to come again; without ready pods they would be refused.
  failureThreshold: 12
{{- end -}}

{{/* A Deployment of one service.
     root, part, service (its name in the code), name, group (its values), env, mounts, volumes, ports, initContainers (YAML),
     podLabels, checksum, account (its service account), apiAccess, resources, graceS, drainS, autoscaled, master (its
     container is called as the Deployment of 0.38.1 called it) */}}
{{- define "resolute.deployment" -}}
{{- $root := .root -}}
{{- $app := .app -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    app: {{ $app }}
    {{- include "resolute.labels" (dict "root" $root "part" .part) | nindent 4 }}
    {{- with .extraLabels }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  {{- if not .autoscaled }}
  replicas: {{ int .group.replicas }}
  {{- end }}
  revisionHistoryLimit: 3
  selector:
    matchLabels: {app: {{ $app }}}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels:
        app: {{ $app }}
        release-namespace: {{ $root.Release.Namespace }}
        {{- include "resolute.labels" (dict "root" $root "part" .part) | nindent 8 }}
        {{- include "resolute.ownLabels" (dict "root" $root "part" .part) | nindent 8 }}
        {{- with .extraLabels }}{{ toYaml . | nindent 8 }}{{ end }}
        {{- with .group.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        checksum/config: {{ .checksum }}
        {{- with .group.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ .account }}
      automountServiceAccountToken: {{ .apiAccess | default false }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ int (.group.terminationGracePeriodSeconds | default .graceS) }}
      securityContext: {{- include "resolute.podSecurity" (dict) | nindent 8 }}
      {{- include "resolute.placement" (dict "root" $root "group" .group "app" $app) | nindent 6 }}
      {{- with .initContainers }}
      initContainers: {{- . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .container | default .service }}
          image: {{ include "resolute.image" (dict "root" $root "group" .group "name" .service) | quote }}
          imagePullPolicy: {{ $root.Values.masterImagePullPolicy }}
          securityContext: {{- include "resolute.containerSecurity" . | nindent 12 }}
          env:
            {{- .env | nindent 12 }}
            {{- include "resolute.env" . | nindent 12 }}
          {{- with .group.extraEnvFrom }}
          envFrom: {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: status, containerPort: 9090}
            {{- with .ports }}{{ . | nindent 12 }}{{ end }}
          resources: {{- .resources | nindent 12 }}
          {{- include "resolute.probes" . | nindent 10 }}
          {{- if .drainS }}
          lifecycle:
            preStop:
              exec: {command: [sleep, {{ .drainS | quote }}]}
          {{- end }}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            {{- if include "resolute.busCaSecret" $root }}
            - {name: bus-ca, mountPath: /etc/resolute/secrets/bus-ca, readOnly: true}
            {{- end }}
            {{- with .mounts }}{{ . | nindent 12 }}{{ end }}
            {{- with .group.extraVolumeMounts }}{{ toYaml . | nindent 12 }}{{ end }}
      volumes:
        - {name: tmp, emptyDir: {}}
        {{- with include "resolute.busCaSecret" $root }}
        - name: bus-ca
          secret: {secretName: {{ . }}, items: [{key: ca.crt, path: ca.crt}]}
        {{- end }}
        {{- with .volumes }}{{ . | nindent 8 }}{{ end }}
        {{- with .group.extraVolumes }}{{ toYaml . | nindent 8 }}{{ end }}
{{- end -}}

{{/* At most one pod of a service is away on purpose: root, part, group, app, pool (of a launcher). */}}
{{- define "resolute.disruptionBudget" -}}
{{- $budget := .group.podDisruptionBudget | default dict -}}
{{- if ne (toString $budget.enabled) "false" }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .app }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "resolute.labels" (dict "root" .root "part" .part) | nindent 4 }}
spec:
  {{- if hasKey $budget "minAvailable" }}
  minAvailable: {{ $budget.minAvailable }}
  {{- else }}
  maxUnavailable: {{ $budget.maxUnavailable | default 1 }}
  {{- end }}
  selector:
    matchLabels: {{- include "resolute.selector" . | nindent 6 }}
{{- end }}
{{- end -}}

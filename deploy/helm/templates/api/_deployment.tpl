{{- define "resolute.apiEnv" -}}
{{ include "resolute.databaseEnv" (dict "root" .) }}
{{ include "resolute.servicesBusEnv" (dict "root" . "name" "api") }}
- {name: RESOLUTE_CLUSTER_CONFIG, value: /etc/resolute/master.yaml}
- {name: RESOLUTE_HTTP__PORT, value: "8081"}
- {name: RESOLUTE_RELEASE_NAMESPACE, value: {{ .Release.Namespace | quote }}}
- name: RESOLUTE_CLUSTER_ID
  valueFrom: {secretKeyRef: {name: resolute-generated-{{ .Release.Name }}, key: cluster-id}}
- name: RESOLUTE_INITIAL_USER_PASSWORD
  valueFrom: {secretKeyRef: {name: resolute-generated-{{ .Release.Name }}, key: initial-password}}
{{- with (.Values.oidc).clientSecretName }}
- name: DET_OIDC_CLIENT_SECRET
  valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: {{ $.Values.oidc.clientSecretKey | quote }}}}
{{- end }}
{{- if not (kindIs "invalid" .Values.enableCors) }}
- {name: RESOLUTE_HTTP__ENABLE_CORS, value: {{ .Values.enableCors | quote }}}
{{- end }}
{{- with .Values.api.trustedProxies }}
- {name: RESOLUTE_HTTP__TRUSTED_PROXIES, value: {{ toJson . | quote }}}
{{- end }}
{{- include "resolute.intakeEnv" . }}
{{- if and (eq .Values.checkpointStorage.type "shared_fs") .Values.checkpointStorage.mountToServer }}
- {name: RESOLUTE_CHECKPOINT_ROOTS, value: {{ dict .Values.checkpointStorage.hostPath "/determined_shared_fs" | toJson | quote }}}
{{- end }}
{{- end -}}

{{- define "resolute.apiMounts" -}}
- {name: config, mountPath: /etc/resolute/master.yaml, subPath: master.yaml, readOnly: true}
{{- if eq (include "resolute.apiSpeaksTls" .) "true" }}
- {name: tls, mountPath: /etc/resolute/secrets/tls, readOnly: true}
{{- end }}
{{- if (.Values.web).image }}
- {name: page, mountPath: {{ include "resolute.webRoot" . }}, readOnly: true}
{{- end }}
{{- if .Values.externalCaCertSecretName }}
- {name: certificates, mountPath: /etc/ssl/certs, readOnly: true}
{{- end }}
{{- if and (eq .Values.checkpointStorage.type "shared_fs") .Values.checkpointStorage.mountToServer }}
- {name: checkpoints, mountPath: /determined_shared_fs}
{{- end }}
{{ include "resolute.databaseMounts" . }}
{{- end -}}

{{- define "resolute.apiVolumes" -}}
- name: config
  secret: {secretName: determined-master-config-{{ .Release.Name }}}
{{- if eq (include "resolute.apiSpeaksTls" .) "true" }}
- name: tls
  secret: {secretName: {{ .Values.tlsSecret }}}
{{- end }}
{{- if (.Values.web).image }}
- name: page
  emptyDir: {}
{{- end }}
{{- with .Values.externalCaCertSecretName }}
- name: external-ca
  secret: {secretName: {{ . }}}
- name: certificates
  emptyDir: {}
{{- end }}
{{- if and (eq .Values.checkpointStorage.type "shared_fs") .Values.checkpointStorage.mountToServer }}
- name: checkpoints
  hostPath: {path: {{ .Values.checkpointStorage.hostPath }}, type: Directory}
{{- end }}
{{ include "resolute.databaseVolumes" . }}
{{- end -}}

{{- define "resolute.apiInit" -}}
{{- if (.Values.web).image }}
{{ include "resolute.pageInit" . }}
{{- end }}
{{- if .Values.externalCaCertSecretName }}
# The certificates of the image and those of the Secret, in one bundle.
- name: certificates
  image: {{ include "resolute.image" (dict "root" . "group" .Values.api "name" "api") | quote }}
  imagePullPolicy: {{ .Values.masterImagePullPolicy }}
  securityContext: {{- include "resolute.containerSecurity" . | nindent 4 }}
  command: [sh, -ec]
  args:
    - |
      for file in /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates/*; do
        if [ -f "$file" ]; then cat "$file"; echo; fi
      done > /certificates/ca-certificates.crt
      cp /certificates/ca-certificates.crt /certificates/cert.pem
  volumeMounts:
    - {name: external-ca, mountPath: /usr/local/share/ca-certificates, readOnly: true}
    - {name: certificates, mountPath: /certificates}
{{- end }}
{{- end -}}

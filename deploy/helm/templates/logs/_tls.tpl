{{/* Whether new tasks bring their lines over HTTPS; found once. Those that were started with the address of before go on over
     HTTP. */}}
{{- define "resolute.intakeSpeaksTls" -}}
{{- $_ := include "resolute.kept" . -}}
{{- if not (hasKey .Values.tasks "_intakeSpeaksTls") }}{{ $_ := set .Values.tasks "_intakeSpeaksTls" (include "resolute.findIntakeSpeaksTls" . | trim) }}{{ end -}}
{{- .Values.tasks._intakeSpeaksTls -}}
{{- end -}}

{{/* As asked. Otherwise a new release does where the api does, and one that is there goes on as it is: a rollback to a revision
     without HTTPS would leave the tasks that use it without an intake. */}}
{{- define "resolute.findIntakeSpeaksTls" -}}
{{- $asked := (.Values.logs).tls -}}
{{- $possible := eq (include "resolute.apiSpeaksTls" .) "true" -}}
{{- if and $asked (not .Values.launcherOnly) (not $possible) -}}
{{- fail "logs.tls needs tlsSecret, and tls.termination api: the log intake has the certificate of the api" -}}
{{- end -}}
{{- if and $possible (not .Values.launcherOnly) -}}
{{- if not (kindIs "invalid" $asked) -}}
{{- if $asked }}true{{ end -}}
{{- else if not .Values.logs.url -}}
{{- $live := lookup "v1" "Service" .Release.Namespace (include "resolute.app" (dict "root" . "part" "logs")) -}}
{{- if $live -}}
{{- range $live.spec.ports }}{{ if eq (int .port) 8443 }}true{{ end }}{{ end -}}
{{- else if lookup "v1" "Namespace" "" "kube-system" -}}
true
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "resolute.intakeUrl" -}}
{{- $host := include "resolute.serviceHost" (dict "root" . "name" (include "resolute.app" (dict "root" . "part" "logs"))) -}}
{{- $own := ternary (printf "https://%s:8443" $host) (printf "http://%s:8081" $host) (eq (include "resolute.intakeSpeaksTls" .) "true") -}}
{{- .Values.logs.url | default $own -}}
{{- end -}}

{{/* The name that tasks look for in the certificate of the api and of the log intake: root, url (of the api); empty for the host
     of each. The certificate has the name of the Service of the api, not that of the intake. */}}
{{- define "resolute.certificateName" -}}
{{- if .root.Values.tls.certificateName -}}{{ .root.Values.tls.certificateName }}
{{- else if include "resolute.intakeSpeaksTls" .root -}}{{ regexReplaceAll ":[0-9]+$" (urlParse .url).host "" }}
{{- end -}}
{{- end -}}

{{/* All names that tasks look for in the certificate of the log intake, as a JSON array. */}}
{{- define "resolute.intakeNames" -}}
{{- $intake := regexReplaceAll ":[0-9]+$" (urlParse (include "resolute.intakeUrl" .)).host "" -}}
{{- $names := list -}}
{{- range include "resolute.pools" . | fromJsonArray -}}
{{- if not .remote -}}
{{- $names = append $names (include "resolute.certificateName" (dict "root" $ "url" (include "resolute.poolMasterUrl" (dict "root" $ "pool" .))) | default $intake) -}}
{{- end -}}
{{- end -}}
{{- uniq $names | toJson -}}
{{- end -}}

{{/* Refuses a certificate that is not for a name that tasks look for, where it can be read. Templates cannot parse one: in its bytes
     each name follows its length. What this lets pass, such as longer names and addresses, `resolute doctor` looks at. */}}
{{- define "resolute.checkIntakeCertificate" -}}
{{- if include "resolute.intakeSpeaksTls" . -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace .Values.tlsSecret | default dict -}}
{{- $pem := get ($secret.data | default dict) "tls.crt" | default "" | b64dec -}}
{{- $first := regexFind "-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\\s]+-----END CERTIFICATE-----" $pem -}}
{{- $bytes := regexReplaceAll "-----(BEGIN|END) CERTIFICATE-----|\\s" $first "" | b64dec -}}
{{- if hasPrefix "0" $bytes -}}
{{- range $name := include "resolute.intakeNames" . | fromJsonArray -}}
{{- $found := or (gt (len $name) 127) (regexMatch "^[0-9.]+$|:" $name) -}}
{{- range list $name (regexReplaceAll "^[^.]+" $name "*") -}}
{{- if regexMatch (printf "(?i)%s%s" (printf "%c" (len .) | regexQuoteMeta) (regexQuoteMeta .)) $bytes }}{{ $found = true }}{{ end -}}
{{- end -}}
{{- if not $found -}}
{{- fail (printf "the certificate in Secret %s is not for %s, which tasks look for in that of the api and of the log intake: issue it for this name, too, or give tls.certificateName a name that it has" $.Values.tlsSecret $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What `resolute doctor` in a pod of the api looks at: nothing where HTTP was asked for. */}}
{{- define "resolute.intakeEnv" -}}
{{- if and (eq (include "resolute.apiSpeaksTls" .) "true") (or .Values.logs.url (ne (toString (.Values.logs).tls) "false")) }}
- {name: RESOLUTE_LOG_INTAKE__URL, value: {{ include "resolute.intakeUrl" . | quote }}}
- {name: RESOLUTE_LOG_INTAKE__NAMES, value: {{ include "resolute.intakeNames" . | quote }}}
- {name: RESOLUTE_LOG_INTAKE__CA_FILE, value: /etc/resolute/secrets/tls/ca.crt}
- {name: RESOLUTE_LOG_INTAKE__CERT_FILE, value: /etc/resolute/secrets/tls/tls.crt}
{{- end }}
{{- end -}}

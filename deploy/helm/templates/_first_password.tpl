{{/* The password that admin and determined begin with. It is theirs from the moment at which the database is made, so another
     value afterwards is not taken: what the Secret and the notes name would open nothing. */}}

{{- define "resolute.givenPassword" -}}
{{- .Values.initialUserPassword | default .Values.defaultPassword | default "" -}}
{{- end -}}

{{/* Whether users may be stored already: in a database of one's own, or on a volume that is there. */}}
{{- define "resolute.usersAreStored" -}}
{{- if and (include "resolute.kept" . | fromJson) (or .Release.IsUpgrade .Values.db.hostAddress) -}}
yes
{{- else if and (not .Values.db.hostAddress) (not .Values.db.disablePVC) (lookup "v1" "PersistentVolumeClaim" .Release.Namespace (include "resolute.databaseClaim" .)) -}}
yes
{{- end -}}
{{- end -}}

{{- define "resolute.firstPassword" -}}
{{- $kept := include "resolute.kept" . | fromJson -}}
{{- $former := get $kept "initial-password" -}}
{{- $given := include "resolute.givenPassword" . -}}
{{- if and $former (include "resolute.usersAreStored" .) -}}
{{ $former }}
{{- else if or $given .Values.allowBlankPasswords -}}
{{ $given }}
{{- else -}}
{{ $former | default (printf "%s-Aa1" (randAlphaNum 16)) }}
{{- end -}}
{{- end -}}

{{/* What the notes say of it. */}}
{{- define "resolute.passwordNotes" -}}
{{- $kept := include "resolute.kept" . | fromJson -}}
{{- $former := get $kept "initial-password" -}}
{{- $given := include "resolute.givenPassword" . -}}
{{- $stored := include "resolute.usersAreStored" . -}}
{{- $read := printf "kubectl -n %s get secret resolute-generated-%s -o jsonpath='{.data.initial-password}' | base64 -d" .Release.Namespace .Release.Name -}}
{{- if and $stored $given (ne $given $former) -}}
The users of this installation are stored and keep their passwords: initialUserPassword is taken for a new database only. An
administrator gives another password with `det user change-password NAME`.
{{- else if and $stored $former -}}
The first password of admin and determined, unless it has been changed since:

  {{ $read }}
{{- else if $stored -}}
The users of this installation are stored and keep their passwords.
{{- else if and .Values.allowBlankPasswords (not $given) -}}
Log in as admin, whose password is blank: set one now with `det user change-password`.
{{- else if .Values.db.hostAddress -}}
The first password of admin and determined, if the database {{ .Values.db.name }} was empty; users that it had keep theirs:

  {{ $read }}
{{- else -}}
The first password of admin and determined:

  {{ $read }}
{{- end -}}
{{- end -}}

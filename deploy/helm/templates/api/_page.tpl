{{/* The built page that the api serves below /det/: where it is in the container of the api, and how it gets there. */}}

{{- define "resolute.webRoot" -}}
{{- $web := .Values.web | default dict -}}
{{- if and $web.image $web.root }}{{ fail "web.image and web.root cannot both be given: web.root is where the page already is" }}{{ end -}}
{{- if $web.image }}/usr/share/resolute/page{{ else }}{{ $web.root | default "" }}{{ end -}}
{{- end -}}

{{/* Copies the page of another image. */}}
{{- define "resolute.pageInit" -}}
- name: page
  image: {{ .Values.web.image | quote }}
  imagePullPolicy: {{ .Values.masterImagePullPolicy }}
  securityContext: {{- include "resolute.containerSecurity" . | nindent 4 }}
  command: [sh, -ec]
  args:
    - |
      if [ ! -f "$FROM/index.html" ]; then
        echo "web.path: $FROM of this image has no index.html. There is one in each of these folders:"
        find / -xdev -name index.html 2>/dev/null | sed 's,/index.html$,,' | head -n 20
        exit 1
      fi
      cp -RL "$FROM/." /page/
  env:
    - {name: FROM, value: {{ required "web.path is required with web.image" .Values.web.path | quote }}}
  volumeMounts:
    - {name: page, mountPath: /page}
{{- end -}}

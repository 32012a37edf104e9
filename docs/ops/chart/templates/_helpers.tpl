{{- define "posthorn.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end -}}

{{- define "posthorn.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "posthorn.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "posthorn.secret" -}}
{{- if .Values.existingSecret }}{{ .Values.existingSecret }}{{ else if .Values.secret }}{{ include "posthorn.name" . }}{{ else }}{{ fail "Set existingSecret to a secret with POSTHORN_DATABASE_URL and POSTHORN_MASTER_KEY, or give both in secret." }}{{ end -}}
{{- end -}}

{{- define "posthorn.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- /* Rejects a budget that no drain of a node could ever meet: dict "part" "web" "replicas" 2 "budget" .Values.web.podDisruptionBudget */ -}}
{{- define "posthorn.checkBudget" -}}
{{- if and (hasKey .budget "minAvailable") (hasKey .budget "maxUnavailable") }}
{{- fail (printf "%s.podDisruptionBudget has minAvailable and maxUnavailable. Set one of them to null." .part) }}
{{- end }}
{{- if hasKey .budget "minAvailable" }}
{{- $least := toString .budget.minAvailable }}
{{- $stay := atoi (trimSuffix "%" $least) }}
{{- if hasSuffix "%" $least }}
{{- $stay = div (add (mul .replicas $stay) 99) 100 }}
{{- end }}
{{- if ge (int $stay) .replicas }}
{{- fail (printf "%s.podDisruptionBudget.minAvailable is %s and there are %d replicas, so no node could be drained. Set it lower, or podDisruptionBudget to null." .part $least .replicas) }}
{{- end }}
{{- end }}
{{- if hasKey .budget "maxUnavailable" }}
{{- if eq (atoi (trimSuffix "%" (toString .budget.maxUnavailable))) 0 }}
{{- fail (printf "%s.podDisruptionBudget.maxUnavailable is 0, so no node could be drained. Set 1, or podDisruptionBudget to null." .part) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "posthorn.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "posthorn.environ" -}}
envFrom:
  - secretRef: {name: {{ include "posthorn.secret" . }}}
env:
  {{- with .Values.databaseSecret }}
  {{- if .name }}
  - name: POSTHORN_DATABASE_URL
    valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}
  {{- end }}
  {{- end }}
  - {name: POSTHORN_ADDR, value: "0.0.0.0:8080"}
  - {name: POSTHORN_METRICS_ADDR, value: "0.0.0.0:9090"}
  - {name: POSTHORN_BASE_URL, value: {{ required "Set baseURL to the public address, such as https://posthorn.example.com." .Values.baseURL | quote }}}
  - {name: POSTHORN_SHUTDOWN_DELAY, value: "{{ .Values.web.shutdownDelay }}s"}
  - {name: POSTHORN_SHUTDOWN_GRACE, value: "{{ .Values.worker.shutdownGrace }}s"}
{{- range $name, $value := .Values.env }}
  - {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end -}}

{{- /* A deployment of one part: dict "root" $ "part" "web" "values" .Values.web */ -}}
{{- define "posthorn.deployment" -}}
{{- $root := .root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "posthorn.name" $root }}-{{ .part }}
  labels: {{- include "posthorn.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .part }}
spec:
  {{- if not (and (eq .part "worker") .values.autoscaling.enabled) }}
  replicas: {{ .values.replicas }}
  {{- end }}
  selector:
    matchLabels: {{- include "posthorn.selector" . | nindent 6 }}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  template:
    metadata:
      labels: {{- include "posthorn.selector" . | nindent 8 }}
      annotations:
        {{- if $root.Values.secret }}
        checksum/secret: {{ $root.Values.secret | toJson | sha256sum }}
        {{- end }}
        {{- with $root.Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "posthorn.name" $root }}
      automountServiceAccountToken: false
      securityContext: {fsGroup: 65532}
      enableServiceLinks: false # their variables look like Posthorn's own
      terminationGracePeriodSeconds: {{ add $root.Values.web.shutdownDelay $root.Values.worker.shutdownGrace 40 }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "posthorn.selector" . | nindent 14 }}
      {{- with .values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .part }}
          image: {{ include "posthorn.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args: [{{ .part }}]
          {{- include "posthorn.environ" $root | nindent 10 }}
            - name: POSTHORN_WORKER_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
          ports:
            {{- if eq .part "web" }}
            - {name: http, containerPort: 8080}
            {{- end }}
            - {name: metrics, containerPort: 9090}
          startupProbe:
            httpGet: {path: /healthz, port: metrics}
            periodSeconds: 2
            failureThreshold: 150
          livenessProbe:
            httpGet: {path: /healthz, port: metrics}
            periodSeconds: 10
            timeoutSeconds: 3
          readinessProbe:
            httpGet: {path: /readyz, port: metrics}
            periodSeconds: 2
            timeoutSeconds: 3
          securityContext: {{- include "posthorn.security" $root | nindent 12 }}
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - {name: data, mountPath: /data}
            - {name: tmp, mountPath: /tmp}
      volumes:
        - {name: data, emptyDir: {}}
        - {name: tmp, emptyDir: {}}
{{- end -}}

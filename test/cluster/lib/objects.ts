/** Objects that several cluster tests need, as YAML. */

/** The echo server of the conformance suite: answers with the request as JSON. */
const ECHO_IMAGE = "registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.3";

export function namespaceYaml(name: string): string {
  return `
apiVersion: v1
kind: Namespace
metadata: {name: ${name}}
`;
}

/** A Deployment with a Service on port 80. */
export function echoYaml(namespace: string, name: string, replicas = 1): string {
  return `
---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  selector: {app: ${name}}
  ports: [{port: 80, targetPort: 3000}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
        - name: echo
          image: ${ECHO_IMAGE}
          # Without it, a pod counts as ready before it listens, and its first requests fail.
          readinessProbe: {tcpSocket: {port: 3000}, periodSeconds: 1}
          env:
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
`;
}

export function gatewayYaml(namespace: string, name: string, extra = ""): string {
  return `
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  gatewayClassName: tracegate
${extra}
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
`;
}

/** An HTTPRoute that sends a path prefix of a host to port 80 of a Service. */
export function routeYaml(
  namespace: string,
  name: string,
  gateway: string,
  host: string,
  path: string,
  service: string,
): string {
  return `
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  parentRefs: [{name: ${gateway}}]
  hostnames: [${host}]
  rules:
    - matches: [{path: {type: PathPrefix, value: ${path}}}]
      backendRefs: [{name: ${service}, port: 80}]
`;
}

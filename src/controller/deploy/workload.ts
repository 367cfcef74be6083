/** The pods of proxies: what runs in them, and how. */
import { createHash } from "node:crypto";
import { stringify } from "yaml";
import { type JsonObject, shortName } from "../base/manifest.ts";
import { type ControllerSettings, lookupRules } from "../base/settings.ts";
import type { Parameters } from "../crd/parameters.ts";
import type { Fleet } from "../translate/model/fleets.ts";
import { strategicMerge } from "./merge.ts";
import type { Owner } from "./owner.ts";
import { asJsonObject, lastOf } from "./parameters.ts";

/** User and group of the image, see install/Dockerfile. */
const USER = 10101;
const STATS_PORT = 15020;
const READINESS_PORT = 15021;
/** Of the proxies' container unless TracegateParameters have others: one process with few routes uses 110 MiB. */
const RESOURCES: JsonObject = { requests: { cpu: "100m", memory: "192Mi" } };
/** Pods of a Gateway are spread over nodes and zones where possible. */
const SPREAD_OVER = ["kubernetes.io/hostname", "topology.kubernetes.io/zone"];
/** Seconds; TracegateParameters `shutdown` changes them. */
const SHUTDOWN = { min: 10, max: 60 };
const CONFIG_FOLDER = "/config";
const TOKEN_FOLDER = "/var/run/secrets/xds-tokens";
/** Seconds for which a token is valid; the kubelet renews it before. */
const TOKEN_LIFETIME = 43_200;
const CA_FOLDER = "/etc/xds-ca";
export const CA_KEY = "ca.crt";
export const COOKIE_KEY = "oidc-cookie-secret";

/**
 * The configuration file of the proxies: what is constant while they run. Everything else comes by the stream. Parameters cannot allow
 * clients of the admin API anything that the installation (`admin`) does not allow.
 */
export function proxyConfig(
  layers: readonly Parameters[],
  { reveal, quit }: ControllerSettings["proxy"]["admin"],
): string {
  const raw = layers.reduce<JsonObject>((all, { rawConfig }) => strategicMerge(all, asJsonObject(rawConfig)), {});
  const level = lastOf(layers, ({ logging }) => logging?.level);
  const format = lastOf(layers, ({ logging }) => logging?.format);
  const config = strategicMerge(
    { logging: { format: "json" } },
    strategicMerge(raw, {
      logging: { ...(level !== undefined && { level }), ...(format !== undefined && { format }) },
      ...(!(reveal && quit) && { admin: { ...(!reveal && { reveal }), ...(!quit && { quit }) } }),
    }),
  );
  return stringify({ config });
}

function imageOf(layers: readonly Parameters[], fallback: string): string {
  const registry = lastOf(layers, ({ image }) => image?.registry);
  const repository = lastOf(layers, ({ image }) => image?.repository);
  const tag = lastOf(layers, ({ image }) => image?.tag);
  const digest = lastOf(layers, ({ image }) => image?.digest);
  const given = splitImage(fallback);
  const name = `${registry === undefined ? given.registry : `${registry}/`}${repository ?? given.repository}`;
  if (digest !== undefined) return `${name}@${digest}`;
  return tag === undefined ? `${name}${given.version}` : `${name}:${tag}`;
}

/** The parts of an image's name, with their separators. The first part is a registry if it looks like a host name. */
function splitImage(image: string): {
  readonly registry: string;
  readonly repository: string;
  readonly version: string;
} {
  const [, name = image, version = ""] = /^([^@]*?)((?::[^:/@]+)?(?:@.+)?)$/.exec(image) ?? [];
  const slash = name.indexOf("/");
  const first = name.slice(0, slash);
  const registry = slash > 0 && (/[.:]/.test(first) || first === "localhost") ? `${first}/` : "";
  return { registry, repository: name.slice(registry.length), version };
}

interface PodInput {
  readonly owner: Owner;
  readonly layers: readonly Parameters[];
  readonly settings: ControllerSettings;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly config: string;
}

/** A PodTemplateSpec. */
export function podTemplate({ owner, layers, settings, labels, annotations, config }: PodInput): JsonObject {
  return {
    metadata: {
      labels,
      annotations: {
        "prometheus.io/scrape": "true",
        "prometheus.io/path": "/metrics",
        "prometheus.io/port": String(STATS_PORT),
        ...annotations,
        // Proxies read their file at the start: another one replaces the pods.
        "checksum/config": createHash("sha256").update(config).digest("hex"),
      },
    },
    spec: {
      serviceAccountName: owner.fleet.name,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: shutdownOf(layers).max,
      topologySpreadConstraints: SPREAD_OVER.map((topologyKey) => ({
        maxSkew: 1,
        topologyKey,
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: selectorOf(owner.fleet) },
      })),
      securityContext: {
        runAsNonRoot: true,
        runAsUser: USER,
        runAsGroup: USER,
        fsGroup: USER,
        seccompProfile: { type: "RuntimeDefault" },
        // Listeners on ports such as 80 and 443, without a capability.
        sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }],
      },
      containers: [container(owner, layers, settings)],
      volumes: volumes(owner, settings),
    },
  };
}

function container(owner: Owner, layers: readonly Parameters[], settings: ControllerSettings): JsonObject {
  const pullPolicy = lastOf(layers, ({ image }) => image?.pullPolicy) ?? settings.proxy.imagePullPolicy;
  const resources = lastOf(layers, (layer) => layer.resources) ?? RESOURCES;
  const extraEnv = layers.flatMap(({ env }) => env ?? []).map((each) => asJsonObject({ ...each }));
  const base: JsonObject = {
    name: "tracegate",
    image: imageOf(layers, settings.proxy.image),
    ...(pullPolicy !== undefined && { imagePullPolicy: pullPolicy }),
    args: ["-f", `${CONFIG_FOLDER}/config.yaml`],
    ports: [{ name: "metrics", containerPort: STATS_PORT, protocol: "TCP" }],
    env: environment(owner, layers, settings),
    resources: asJsonObject(resources),
    startupProbe: { ...probe("ready"), periodSeconds: 1, failureThreshold: 60, timeoutSeconds: 2 },
    readinessProbe: { ...probe("ready"), periodSeconds: 10 },
    // Only for a process that hangs: a restart ends all connections, so a busy process gets two minutes.
    livenessProbe: { ...probe("live"), periodSeconds: 20, failureThreshold: 6, timeoutSeconds: 10 },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [
      { name: "config", mountPath: CONFIG_FOLDER, readOnly: true },
      ...(settings.xds.auth ? [{ name: "xds-token", mountPath: TOKEN_FOLDER, readOnly: true }] : []),
      ...(settings.xds.mode === "tls" ? [{ name: "xds-ca", mountPath: CA_FOLDER, readOnly: true }] : []),
      { name: "tmp", mountPath: "/tmp" },
    ],
  };
  return strategicMerge(strategicMerge(base, { env: extraEnv }), { env: lookupVariables(settings) });
}

/**
 * The operator's rules for hosts, which parameters cannot change. They are passed as variables, which older proxies ignore; with unknown
 * fields in their file they would not start.
 */
function lookupVariables({ hosts }: ControllerSettings): JsonObject[] {
  const { denyDomains, denyNetworks } = lookupRules(hosts);
  return [
    ...(denyDomains.length === 0 ? [] : [{ name: "DNS_DENY_DOMAINS", value: denyDomains.join(",") }]),
    ...(denyNetworks.length === 0 ? [] : [{ name: "DNS_DENY_NETWORKS", value: denyNetworks.join(",") }]),
  ];
}

function probe(what: "ready" | "live"): JsonObject {
  return { httpGet: { path: `/healthz/${what}`, port: READINESS_PORT, scheme: "HTTP" } };
}

function shutdownOf(layers: readonly Parameters[]): { readonly min: number; readonly max: number } {
  return {
    min: lastOf(layers, ({ shutdown }) => shutdown?.min) ?? SHUTDOWN.min,
    max: lastOf(layers, ({ shutdown }) => shutdown?.max) ?? SHUTDOWN.max,
  };
}

function environment(
  owner: Owner,
  layers: readonly Parameters[],
  { xds, namespace, ports }: ControllerSettings,
): JsonObject[] {
  const { min, max } = shutdownOf(layers);
  const field = (name: string, fieldPath: string): JsonObject => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const scheme = xds.mode === "tls" ? "https" : "http";
  // Without the cluster's domain, which has another name in some clusters; the pod's resolver adds it.
  return [
    { name: "XDS_ADDRESS", value: `${scheme}://${xds.service}.${namespace}.svc:${ports.xds}` },
    ...(xds.mode === "tls" ? [{ name: "XDS_ROOT_CA", value: `${CA_FOLDER}/${CA_KEY}` }] : []),
    {
      name: owner.gateway === undefined ? "GATEWAY_CLASS" : "GATEWAY",
      value: owner.gateway?.metadata.name ?? owner.className,
    },
    field("NAMESPACE", "metadata.namespace"),
    field("POD_NAME", "metadata.name"),
    field("NODE_NAME", "spec.nodeName"),
    field("INSTANCE_IP", "status.podIP"),
    field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
    { name: "CPU_LIMIT", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
    { name: "TERMINATION_GRACE_PERIOD_SECONDS", value: String(max) },
    { name: "CONNECTION_MIN_TERMINATION_DEADLINE", value: `${min}s` },
    {
      name: "OIDC_COOKIE_SECRET",
      valueFrom: { secretKeyRef: { name: secretName(owner), key: COOKIE_KEY } },
    },
  ];
}

/** The Secret with the key of login cookies, which all replicas must share. */
export function secretName(owner: Owner): string {
  return shortName(nameStem(owner), "-session");
}

export function caConfigMapName(owner: Owner): string {
  return shortName(nameStem(owner), "-xds-ca");
}

function nameStem({ gateway, fleet }: Owner): string {
  return gateway?.metadata.name ?? fleet.name;
}

function volumes(owner: Owner, { xds }: ControllerSettings): JsonObject[] {
  const token: JsonObject = {
    serviceAccountToken: { audience: xds.audience, expirationSeconds: TOKEN_LIFETIME, path: "xds-token" },
  };
  return [
    { name: "config", configMap: { name: owner.fleet.name } },
    ...(xds.auth ? [{ name: "xds-token", projected: { sources: [token] } }] : []),
    ...(xds.mode === "tls" ? [{ name: "xds-ca", configMap: { name: caConfigMapName(owner) } }] : []),
    { name: "tmp", emptyDir: {} },
  ];
}

/** The label that selects the pods. It can never change, nor can it be overridden. */
export function selectorOf({ label: { name, value } }: Pick<Fleet, "label">): Readonly<Record<string, string>> {
  return { [name]: value };
}

/** What a route's backendRefs refer to. */
import type { PolicyLevel } from "../../../ir/origins.ts";
import { keyOfObject, refKey } from "../../../kube/keys.ts";
import {
  type BackendReference,
  GATEWAY_GROUP,
  MULTICLUSTER_GROUP,
  type Service,
  type ServicePort,
  TRACEGATE_GROUP,
} from "../../../kube/objects.ts";
import { NO_LEVEL } from "../../../policies/merge.ts";
import type { PolicySet } from "../../../policies/policy-set.ts";
import type { Target } from "../../../upstream/settings/target.ts";
import type { Read } from "../../graph/graph.ts";
import { keyOfImport, keyOfService, keyOfUdpPorts, serviceOfImport } from "../cluster/discovery.ts";
import type { Findings } from "../model/findings.ts";
import { isGranted } from "../model/grants.ts";
import { HTTP_KINDS, type RouteKind } from "../model/model.ts";
import { mergeAttached } from "../policy/policies.ts";
import { backendTlsOf } from "./backend-tls.ts";
import { backendModel } from "./backends.ts";

/** The route that refers to backends. */
export interface Referrer {
  readonly read: Read;
  readonly kind: RouteKind;
  readonly namespace: string;
  readonly findings: Findings;
}

/** A backend that can be called, or its placeholder. */
export interface ResolvedBackend {
  /** `invalid` responds with 500 and closes connections without HTTP: the share of such a backend goes to no other one. */
  readonly target: Target;
  /** Its own. */
  readonly policies: PolicyLevel;
  /** The `refKey`s of the backend, the widest first. */
  readonly targets: readonly string[];
  /** Of a TracegateBackend: `<namespace>/<name>`. */
  readonly backend?: string;
}

/** Looks a reference up. `where` is its place in the route, for messages, such as `rules[0].backendRefs[1]`. */
export function resolveBackend(referrer: Referrer, ref: BackendReference, where: string): ResolvedBackend {
  const { group = "", kind = "Service", namespace = referrer.namespace, name } = ref;
  const reference = `${namespace}/${name}`;
  const refuse: Refuse = (reason, message) => {
    referrer.findings.breaks(reason, `${where}: ${message}`);
    return invalid(`${kind} ${reference}`);
  };
  const isService = group === "" && kind === "Service";
  const isImport = group === MULTICLUSTER_GROUP && kind === "ServiceImport";
  if (!isService && !isImport && !(group === TRACEGATE_GROUP && kind === "TracegateBackend"))
    return refuse(
      "InvalidKind",
      `${kind} of group "${group}" is not supported as a backend; use a Service, a ServiceImport (${MULTICLUSTER_GROUP}) or a TracegateBackend (${TRACEGATE_GROUP})`,
    );
  const from = { group: GATEWAY_GROUP, kind: referrer.kind, namespace: referrer.namespace };
  if (!isGranted(referrer.read, from, { group, kind, namespace, name }))
    return refuse(
      "RefNotPermitted",
      `${kind} ${reference} is in another namespace; create a ReferenceGrant there for ${referrer.kind} of ${referrer.namespace}`,
    );
  if (isImport) return resolveImport(referrer, reference, ref.port, refuse);
  if (!isService) return resolveTracegateBackend(referrer.read, namespace, name, refuse);
  const service = referrer.read.get("Service", reference);
  if (service === undefined) return refuse("BackendNotFound", `Service ${reference} does not exist`);
  if (service.spec.type === "ExternalName")
    return refuse(
      "UnsupportedValue",
      `Service ${reference} has type ExternalName, which could point anywhere; use a TracegateBackend (${TRACEGATE_GROUP})`,
    );
  if (ref.port === undefined) return refuse("BackendNotFound", `port is required for Service ${reference}`);
  return resolveService(referrer, service, ref.port, refuse);
}

/** Stands for a backend that cannot be called. */
export function invalid(reference: string): ResolvedBackend {
  return { target: { type: "invalid", reference }, policies: NO_LEVEL, targets: [] };
}

type Refuse = (reason: Parameters<Findings["breaks"]>[0], message: string) => ResolvedBackend;

function resolveTracegateBackend(read: Read, namespace: string, name: string, refuse: Refuse): ResolvedBackend {
  const backend = read.query(backendModel, `${namespace}/${name}`);
  if (backend === undefined) return refuse("BackendNotFound", `TracegateBackend ${namespace}/${name} does not exist`);
  const { target, policies, refused } = backend;
  if (refused && target.type === "invalid")
    return refuse(
      "RefNotPermitted",
      `TracegateBackend ${namespace}/${name} names a host inside the cluster, see its status`,
    );
  if (target.type === "invalid")
    return refuse("UnsupportedValue", `TracegateBackend ${namespace}/${name} is invalid, see its status`);
  const targets = [refKey({ kind: "TracegateBackend", namespace, name })];
  return { target, policies, targets, backend: `${namespace}/${name}` };
}

const IMPORT_REMEDY = "attach a TracegatePolicy with backend.backendTLS to the ServiceImport";

/** Its policies are those of TracegatePolicies: a BackendTLSPolicy has Services as targets only. */
function resolveImport(
  { read, kind }: Referrer,
  reference: string,
  number: number | undefined,
  refuse: Refuse,
): ResolvedBackend {
  const imported = read.get("ServiceImport", reference);
  const what = `ServiceImport ${reference}`;
  if (imported === undefined) return refuse("BackendNotFound", `${what} does not exist`);
  if (number === undefined) return refuse("BackendNotFound", `port is required for ${what}`);
  const found = portOf(serviceOfImport(imported), number, kind);
  if ("missing" in found) return refuse("BackendNotFound", `${what} ${found.missing}`);
  const { namespace, name } = imported.metadata;
  const whole = refKey({ kind: "ServiceImport", namespace, name });
  const targets = [whole, `${whole}/${number}`];
  const problem = HTTP_KINDS.has(kind)
    ? unsupported(found.port, mergeAttached(read, "backend", targets).set, IMPORT_REMEDY)
    : undefined;
  if (problem !== undefined) return refuse("UnsupportedProtocol", `${what}, port ${number}: ${problem}`);
  return { target: { type: "service", key: keyOfImport(namespace, name), port: number }, policies: NO_LEVEL, targets };
}

/** The port of a number for a kind of route, or what is wrong with the Service, as the rest of a sentence. */
function portOf(
  { spec: { ports = [] } }: Service,
  number: number,
  kind: RouteKind,
): { readonly port: ServicePort } | { readonly missing: string } {
  const protocol = kind === "UDPRoute" ? "UDP" : "TCP";
  const port = ports.find((each) => each.port === number && (each.protocol ?? "TCP") === protocol);
  if (port !== undefined) return { port };
  const known = ports.map((each) => `${each.port}/${each.protocol ?? "TCP"}`).join(", ");
  return { missing: known === "" ? "has no ports" : `has no port ${number}/${protocol}; use one of ${known}` };
}

function resolveService({ read, kind }: Referrer, service: Service, number: number, refuse: Refuse): ResolvedBackend {
  const { namespace, name } = service.metadata;
  const reference = keyOfObject(service);
  const found = portOf(service, number, kind);
  if ("missing" in found) return refuse("BackendNotFound", `Service ${reference} ${found.missing}`);
  const { port } = found;
  const tls = read.query(backendTlsOf, [reference, port.name ?? ""]);
  if (tls !== undefined && "invalid" in tls)
    return refuse("InvalidBackendTLSPolicy", `Service ${reference}: ${tls.invalid}`);
  const whole = refKey({ kind: "Service", namespace, name });
  const targets = [whole, `${whole}/${number}`];
  const policies = tls?.level ?? NO_LEVEL;
  const problem = HTTP_KINDS.has(kind)
    ? unsupported(
        port,
        mergeAttached(read, "backend", targets, policies).set,
        "attach a BackendTLSPolicy to the Service",
      )
    : undefined;
  if (problem !== undefined) return refuse("UnsupportedProtocol", `Service ${reference}, port ${number}: ${problem}`);
  const isOfTcpToo = service.spec.ports?.some((each) => each.port === number && each !== port) === true;
  const key = kind === "UDPRoute" && isOfTcpToo ? keyOfUdpPorts(namespace, name) : keyOfService(namespace, name);
  return { target: { type: "service", key, port: number }, policies, targets };
}

/** `kubernetes.io/` protocols of GEP-1911, which promise what a backend speaks. */
const SUPPORTED: ReadonlySet<string> = new Set(["kubernetes.io/h2c", "kubernetes.io/ws", "kubernetes.io/wss"]);
/** Protocols inside TLS: how the backend is verified must be configured, and plaintext would fail at best. */
const ENCRYPTED: ReadonlySet<string> = new Set(["https", "kubernetes.io/wss"]);

/** Why HTTP cannot be spoken on a port. The version of HTTP is not decided here but where calls are made. */
function unsupported({ appProtocol = "" }: ServicePort, policies: PolicySet, remedy: string): string | undefined {
  const protocol = appProtocol.toLowerCase();
  if (protocol.startsWith("kubernetes.io/") && !SUPPORTED.has(protocol))
    return `appProtocol ${appProtocol} is not supported; use one of ${[...SUPPORTED].join(", ")}`;
  if (ENCRYPTED.has(protocol) && policies.backendTLS === undefined)
    return `appProtocol ${appProtocol} needs TLS; ${remedy}`;
  return undefined;
}

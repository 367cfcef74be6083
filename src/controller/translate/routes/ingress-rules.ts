/**
 * Rules of Ingresses (networking.k8s.io/v1). An Ingress has no conditions: what is wrong with it goes into Events and into
 * `status.loadBalancer.ingress[].ports[].error`.
 */
import { nameOfKey } from "../../../base/object-key.ts";
import { formatPath, type Path } from "../../../base/paths.ts";
import type { PathMatch, ValueMatch } from "../../../ir/ir.ts";
import type { IngressBackend, IngressPath } from "../../../kube/ingress.ts";
import type { BackendReference, Ingress } from "../../../kube/objects.ts";
import { NO_LEVEL } from "../../../policies/merge.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import { invalid, resolveBackend } from "../backends/backend-refs.ts";
import { gatewayModel } from "../listeners/gateways.ts";
import { certificatesOf, hostOwners, hostsOf, mayAddListeners, parentOfIngress } from "../listeners/ingresses.ts";
import { Findings } from "../model/findings.ts";
import { attach } from "./attach.ts";
import type { Rule, RuleBackend } from "./http-rules.ts";
import { refusedAnnotations } from "./ingress-annotations.ts";

/** Something wrong with an Ingress. */
export interface IngressProblem {
  /** In CamelCase: the reason of the Event. */
  readonly reason: string;
  readonly message: string;
}

interface IngressModel {
  /** `<namespace>/<name>`; absent: none serves it. */
  readonly gateway?: string;
  readonly hosts: readonly HostRules[];
  readonly problems: readonly IngressProblem[];
}

interface HostRules {
  /** Lower-case; empty: all hosts. */
  readonly host: string;
  readonly rules: readonly Rule[];
}

/** Key: `<namespace>/<name>`; undefined: no such Ingress, or its class is not ours. */
export const ingressModel = defineQuery<IngressModel | undefined>("ingressModel", (read, key) => {
  const ingress = read.get("Ingress", key);
  const parent = read.query(parentOfIngress, key);
  if (ingress === undefined || parent === undefined) return undefined;
  if ("problem" in parent) return { hosts: [], problems: [{ reason: "NoGateway", message: parent.problem }] };
  const { gateway } = parent;
  if (read.query(gatewayModel, gateway) === undefined) {
    const message = `Gateway ${gateway}, which the IngressClass names, does not exist or has another class`;
    return { hosts: [], problems: [{ reason: "NoGateway", message }] };
  }
  const problems: IngressProblem[] = [];
  const refused = refusedAnnotations(ingress.metadata.annotations);
  problems.push(...refused.map((message) => ({ reason: "UnsupportedAnnotation", message })));
  const owners = read.query(hostOwners, gateway);
  const { namespace } = ingress.metadata;
  const hosts = hostsOf(ingress).flatMap((host): HostRules | [] => {
    const shown = host === "" ? "any host" : `host ${host}`;
    const owner = owners[host] ?? namespace;
    if (owner !== namespace) {
      const message = `${shown} belongs to namespace ${owner}, which had an Ingress with it first; use another host`;
      problems.push({ reason: "HostConflict", message });
      return [];
    }
    const hostnames = host === "" ? [] : [host];
    const attaching = attach(read, { kind: "Ingress", namespace, hostnames }, nameOfKey(gateway));
    if (attaching?.listeners.length === 0)
      problems.push({ reason: "NotAdmitted", message: `${shown}: ${attaching.condition.message}` });
    const translated = rulesOf(read, ingress, host, problems);
    return { host, rules: refused.length === 0 ? translated : translated.map(refuse) };
  });
  return { gateway, hosts, problems: [...problems, ...tlsProblems(read, key, ingress, gateway)] };
});

/** Its requests get 500, not what a wider rule would make of them. */
function refuse(rule: Rule): Rule {
  return { ...rule, backends: [REFUSED] };
}

const REFUSED: RuleBackend = { ...invalid("ingress"), weight: 1, at: [], filters: NO_LEVEL };

/** The rules for one host: a path each, and the default backend among those for any host. */
function rulesOf(read: Read, ingress: Ingress, host: string, problems: IngressProblem[]): readonly Rule[] {
  const { rules = [], defaultBackend } = ingress.spec;
  const translated: Rule[] = [];
  const add = (path: Omit<IngressPath, "backend">, backend: IngressBackend, at: Path, backendAt: Path): void => {
    const written = matchOf(path);
    if (typeof written === "string")
      problems.push({ reason: "UnsupportedPath", message: `${formatPath(at)}.path: ${written}` });
    const match = typeof written === "string" ? undefined : { path: written, headers: oneLabel(host), query: [] };
    // Numbers are for keys, which have to differ within the Ingress.
    const index = numberOf(ingress, at);
    const resolved = backendOf(read, ingress, backend, [...at, ...backendAt], problems);
    translated.push({
      index,
      at,
      matches: match === undefined ? [] : [match],
      policies: NO_LEVEL,
      backends: [{ ...resolved, at: backendAt }],
    });
  };
  for (const [i, rule] of rules.entries()) {
    if ((rule.host ?? "").toLowerCase() !== host) continue;
    for (const [j, each] of (rule.http?.paths ?? []).entries())
      add(each, each.backend, ["spec", "rules", i, "http", "paths", j], ["backend"]);
  }
  if (host === "" && defaultBackend !== undefined)
    add({ pathType: "Prefix", path: "/" }, defaultBackend, ["spec", "defaultBackend"], []);
  return translated.filter(({ matches }) => matches.length > 0);
}

/** The position of a path among all paths of an Ingress; the default backend comes last. */
function numberOf({ spec: { rules = [] } }: Ingress, [, list, rule, , , path]: Path): number {
  const counts = rules.map(({ http }) => http?.paths?.length ?? 0);
  const before = list === "rules" ? counts.slice(0, Number(rule)) : counts;
  return before.reduce((sum, count) => sum + count, list === "rules" ? Number(path) : 0);
}

/** Characters of regular expressions that paths of URLs do not have. */
const REGEX = /[\\^$*()[\]{}|]/;

/** The match of a path, or why it has none. */
function matchOf({ path = "/", pathType }: Omit<IngressPath, "backend">): PathMatch | string {
  if (pathType === "Exact") return { type: "exact", value: path };
  if (pathType === "ImplementationSpecific" && (REGEX.test(path) || !path.startsWith("/")))
    return `${JSON.stringify(path)} looks like a regular expression, and ImplementationSpecific means a prefix here; use an HTTPRoute with a match of type RegularExpression`;
  return { type: "pathPrefix", value: path };
}

/** `*.example.com` of an Ingress stands for one label (Ingress, `spec.rules[].host`), of listeners and routes for any number. */
function oneLabel(host: string): readonly ValueMatch[] {
  if (!host.startsWith("*.")) return [];
  const rest = host.slice(1).replaceAll(".", "\\.");
  return [{ name: ":authority", type: "regex", value: `(?i)[^.:]+${rest}(?::\\d+)?` }];
}

function backendOf(
  read: Read,
  ingress: Ingress,
  backend: IngressBackend,
  at: Path,
  problems: IngressProblem[],
): Omit<RuleBackend, "at"> {
  const { namespace } = ingress.metadata;
  const findings = new Findings();
  const [reference] = referenceOf(backend);
  const port = backend.service === undefined ? undefined : portOf(read, namespace, backend.service);
  const where = formatPath(at);
  const resolved =
    reference === undefined
      ? invalid("nothing")
      : resolveBackend(
          { read, kind: "Ingress", namespace, findings },
          { ...reference, ...(port !== undefined && { port }) },
          where,
        );
  if (reference === undefined)
    findings.breaks("BackendNotFound", `${where}: names neither a Service nor another object`);
  problems.push(...findings.broken.map(({ reason, message }) => ({ reason, message })));
  return { ...resolved, weight: 1, filters: NO_LEVEL };
}

/** The object that a backend names; its port is not known yet if it has a name. */
export function referenceOf({ service, resource }: IngressBackend): readonly BackendReference[] {
  if (service !== undefined) return [{ name: service.name }];
  if (resource === undefined) return [];
  const { apiGroup: group = "", kind, name } = resource;
  return [{ group, kind, name }];
}

function portOf(
  read: Read,
  namespace: string,
  { name, port: { name: portName, number } = {} }: NonNullable<IngressBackend["service"]>,
): number | undefined {
  if (portName === undefined) return number;
  const ports = read.get("Service", `${namespace}/${name}`)?.spec.ports ?? [];
  return ports.find((each) => each.name === portName)?.port;
}

/** Hosts of `tls` that are not served with the certificate that the Ingress names. */
function tlsProblems(read: Read, key: string, ingress: Ingress, gateway: string): readonly IngressProblem[] {
  const object = read.get("Gateway", gateway);
  const { namespace } = ingress.metadata;
  const certificates = certificatesOf(ingress);
  if (object === undefined || certificates.length === 0) return [];
  const problem = (message: string): IngressProblem => ({ reason: "TlsNotServed", message: `spec.tls: ${message}` });
  if (!mayAddListeners(read, object, namespace))
    return [
      problem(`Gateway ${gateway} takes no certificates from namespace ${namespace}; set its spec.allowedListeners`),
    ];
  const listeners = read.query(gatewayModel, gateway)?.listeners ?? [];
  return certificates.flatMap(({ host, secretName }) => {
    const listener = listeners.find((each) => each.ingress !== undefined && each.hostname === host);
    // Its host belongs to another namespace, which another problem says.
    if (listener === undefined) return [];
    if (listener.ingress !== key) {
      const other = read.get("Ingress", listener.ingress ?? "");
      const used = other && certificatesOf(other).find((each) => each.host === host)?.secretName;
      return used === secretName && listener.namespace === namespace
        ? []
        : [problem(`${host} is served with the certificate of Ingress ${listener.ingress}, which is older`)];
    }
    const failed = listener.conditions.find(
      ({ type, status }) =>
        (type === "Accepted" || type === "ResolvedRefs" || type === "Programmed") && status === "False",
    );
    return failed === undefined ? [] : [problem(`${host}: ${failed.message}`)];
  });
}

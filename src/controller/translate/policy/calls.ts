/** Calls that policies make, with the policies that are attached to what they call. */
import { nameOfKey } from "../../../base/object-key.ts";
import { STANDARD_ENVIRONMENT } from "../../../cel/index.ts";
import { refKey } from "../../../kube/keys.ts";
import type { PolicyInputs } from "../../../policies/policy-set.ts";
import { type CalledBackend, type CalledInputs, serviceKey } from "../../../translation/call-policies.ts";
import { type CallContext, CalledTargets } from "../../../translation/called-targets.ts";
import type { Report } from "../../../translation/problems/problem.ts";
import { type BackendSpec, backendSpec } from "../../crd/backend.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import { hostCheck } from "../cluster/cluster-hosts.ts";
import { keyOfService } from "../cluster/discovery.ts";
import type { LintFinding } from "../model/conditions.ts";
import { type BackendInput, readBackendPolicies } from "./input.ts";
import { type Callee, nameOfBackend } from "./names.ts";
import { inputsAt, withoutLost } from "./parts.ts";
import { Problems } from "./problems.ts";
import { ObjectSources } from "./sources.ts";

/** The inputs for translating the policies of an object of `namespace`. `urls` collects the URLs that they name. */
export function callContext(
  read: Read,
  namespace: string,
  callees: readonly Callee[],
  report: Report,
  urls: string[],
): CallContext {
  const hosts = hostCheck(read, namespace);
  const sources = new ObjectSources(read, report, hosts, urls);
  const { called, services } = calledInputs(read, callees);
  const calledTargets = new CalledTargets(called, sources, services, report, new Set(), STANDARD_ENVIRONMENT, hosts);
  return { sources, calledTargets, report, cel: STANDARD_ENVIRONMENT };
}

interface Attached {
  readonly policies: readonly PolicyInputs[];
  readonly callees: readonly Callee[];
}

/** What is attached to a Service, a port of it, or a TracegateBackend, as written. Key: a `refKey`. */
const attachedInputs = defineQuery<Attached>("attachedInputs", (read, target) => {
  const attached = inputsAt(read, target);
  return {
    policies: attached.inputs.map(({ key, backend }) => withoutLost(backend, attached, key, "backend")),
    callees: attached.inputs.flatMap(({ callees }) => callees),
  };
});

/** The called services and backends, with what those call in turn. */
function calledInputs(
  read: Read,
  first: readonly Callee[],
): {
  readonly called: CalledInputs;
  readonly services: ReadonlyMap<string, Readonly<Record<string, number>>>;
} {
  const backends = new Map<string, CalledBackend>();
  const attached = new Map<string, readonly PolicyInputs[]>();
  const services = new Map<string, Readonly<Record<string, number>>>();
  const seen = new Set<string>();
  const queue = [...first];
  const attachedTo = (target: string): readonly PolicyInputs[] => {
    const { policies, callees } = read.query(attachedInputs, target);
    queue.push(...callees);
    return policies;
  };
  for (let callee = queue.pop(); callee !== undefined; callee = queue.pop()) {
    const { kind, namespace, name } = callee;
    const id = JSON.stringify(callee);
    if (seen.has(id)) continue;
    seen.add(id);
    const target = refKey({ kind, namespace, name });
    if (callee.kind === "Service") {
      const { port } = callee;
      const key = keyOfService(namespace, name);
      if (!services.has(key)) attached.set(serviceKey(key), attachedTo(target));
      services.set(key, { ...services.get(key), [port]: port });
      attached.set(serviceKey(key, port), attachedTo(`${target}/${port}`));
      continue;
    }
    const backend = read.query(backendInput, `${namespace}/${name}`);
    const file = nameOfBackend(callee).slice(1);
    queue.push(...backend.callees);
    const refused = hostCheck(read, namespace)(backend.spec?.static?.host ?? backend.spec?.static?.srv ?? "");
    const host = refused === undefined ? hostOf(backend.spec) : undefined;
    backends.set(file, { host, dns: backend.spec?.static?.dns, policies: [...attachedTo(target), backend.policies] });
  }
  return { called: { backends, services: attached }, services };
}

/** A TracegateBackend as written. */
interface BackendRead extends BackendInput {
  readonly spec: BackendSpec | undefined;
  readonly problems: readonly string[];
  readonly findings: readonly LintFinding[];
}

/** Key: `<namespace>/<name>`. */
export const backendInput = defineQuery<BackendRead>("backendInput", (read, key) => {
  const backend = read.get("TracegateBackend", key);
  const problems = new Problems();
  const result = backendSpec.safeParse(backend?.spec);
  return {
    spec: result.data,
    ...readBackendPolicies(read, nameOfKey(key).namespace, result.data?.policies ?? {}, problems),
    problems: problems.errors,
    findings: problems.findings,
  };
});

/** A fixed address in the syntax of the configuration file. */
export function hostOf(spec: BackendSpec | undefined): string | undefined {
  if (spec?.static === undefined) return undefined;
  const { host = "", port, srv, unixPath } = spec.static;
  if (srv !== undefined) return `srv:${srv}`;
  if (unixPath !== undefined) return `unix:${unixPath}`;
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/**
 * BackendTLSPolicy: TLS on connections to a Service, with the CAs and names that verify it. A Service with an invalid policy gets
 * no connections: plaintext would reveal what should be encrypted.
 */
import { nameOfKey } from "../../../base/object-key.ts";
import { levelOf, type PolicyLevel } from "../../../ir/origins.ts";
import { keyOfObject } from "../../../kube/keys.ts";
import type { BackendTlsPolicy, PolicyTargetReference } from "../../../kube/objects.ts";
import type { BackendTls } from "../../../tls/tls-settings.ts";
import { defineIndex, defineQuery, type Pair, type Read } from "../../graph/graph.ts";
import { loadCaBundle } from "../cluster/secrets.ts";
import { isFalse, isTrue, joined } from "../model/conditions.ts";
import type { ConditionDraft } from "../model/model.ts";
import { byAge } from "../model/precedence.ts";

/** How connections to a port of a Service are made: with `backendTLS`, or not at all. */
type BackendTlsChoice = { readonly level: PolicyLevel } | { readonly invalid: string };

/** Only Services can be targets (BackendTLSPolicySpec.targetRefs). */
export function isService({ group, kind }: Pick<PolicyTargetReference, "group" | "kind">): boolean {
  return group === "" && kind === "Service";
}

/** Policies by their targets, `<namespace>/<service>`. */
const BY_SERVICE = defineIndex("BackendTLSPolicy", ({ metadata, spec }) => [
  ...new Set(spec.targetRefs.filter(isService).map(({ name }) => `${metadata.namespace}/${name}`)),
]);

/**
 * Of a Service (`objectKey`) and the name of a port, which may be empty; undefined: no policy. A policy for the port goes before one for the whole Service, of
 * equals the oldest (BackendTLSPolicySpec.targetRefs).
 */
export const backendTlsOf = defineQuery<BackendTlsChoice | undefined, Pair>("backendTlsOf", (read, [key, port]) => {
  const { namespace, name } = nameOfKey(key);
  const candidates = read.find(BY_SERVICE, key);
  const ofPort = port === "" ? undefined : winner(candidates, name, port);
  const policy = ofPort ?? winner(candidates, name, undefined);
  if (policy === undefined) return undefined;
  const { tls, conditions } = read.query(translatedBackendTls, keyOfObject(policy));
  const object = { kind: "BackendTLSPolicy", namespace, name: policy.metadata.name };
  if (tls !== undefined) return { level: levelOf({ backendTLS: tls }, () => ({ in: object, at: ["spec"] })) };
  const why = conditions.find(({ status }) => status === "False")?.message ?? "";
  return { invalid: `BackendTLSPolicy ${policy.metadata.name} is invalid: ${why}` };
});

/** The oldest policy for a section of a Service. */
function winner(
  policies: readonly BackendTlsPolicy[],
  service: string,
  section: string | undefined,
): BackendTlsPolicy | undefined {
  return policies
    .filter(({ spec }) =>
      spec.targetRefs.some(
        (each) => isService(each) && each.name === service && (each.sectionName || undefined) === section,
      ),
    )
    .sort(byAge)[0];
}

/** The keys of the policies that win over this one, for each target that it loses. */
export function conflictsOf(read: Read, policy: BackendTlsPolicy): readonly string[] {
  return policy.spec.targetRefs.flatMap((target) => {
    if (!isService(target)) return [];
    const { name, sectionName } = target;
    const candidates = read.find(BY_SERVICE, `${policy.metadata.namespace}/${name}`);
    const first = winner(candidates, name, sectionName || undefined);
    return first === undefined || first.metadata.name === policy.metadata.name ? [] : [keyOfObject(first)];
  });
}

interface TranslatedBackendTls {
  /** Absent: invalid. */
  readonly tls?: BackendTls;
  /** The policy's own contribution to the conditions Accepted and ResolvedRefs. */
  readonly conditions: readonly ConditionDraft[];
}

/** What a policy says, whatever it is attached to. Key: `<namespace>/<name>`. */
export const translatedBackendTls = defineQuery<TranslatedBackendTls>("translatedBackendTls", (read, key) => {
  const policy = read.get("BackendTLSPolicy", key);
  if (policy === undefined) return { conditions: [] };
  const { validation } = policy.spec;
  const { hostname, subjectAltNames = [], caCertificateRefs = [], wellKnownCACertificates = "" } = validation;
  const names = subjectAltNames.flatMap(({ type, hostname: host, uri }) => (type === "URI" ? uri : host) ?? []);
  const settings = {
    hostname: hostname.toLowerCase(),
    insecure: false,
    insecureHost: false,
    ...(names.length > 0 && { subjectAltNames: names }),
  };
  if (caCertificateRefs.length === 0) {
    if (wellKnownCACertificates === "System") return { tls: settings, conditions: [ACCEPTED, RESOLVED] };
    const message = `validation.wellKnownCACertificates ${JSON.stringify(wellKnownCACertificates)} is not supported; use System, or list caCertificateRefs`;
    return { conditions: [isFalse("Accepted", "Invalid", message), RESOLVED] };
  }
  const from = { kind: "BackendTLSPolicy", namespace: policy.metadata.namespace } as const;
  const results = caCertificateRefs.map((ref) => loadCaBundle(read, from, ref));
  const problems = results.flatMap((each) => (each.ok ? [] : [each]));
  const pems = results.flatMap((each) => (each.ok ? [each.value] : []));
  const [first] = problems;
  const all = joined(problems.map(({ message }) => message));
  const reason = first?.why === "invalidKind" ? "InvalidKind" : "InvalidCACertificateRef";
  const resolved = first === undefined ? RESOLVED : isFalse("ResolvedRefs", reason, all);
  if (pems.length === 0) return { conditions: [isFalse("Accepted", "NoValidCACertificate", all), resolved] };
  return { tls: { ...settings, root: pems.join("") }, conditions: [ACCEPTED, resolved] };
});

const ACCEPTED = isTrue("Accepted", "Accepted", "Policy is accepted");
const RESOLVED = isTrue("ResolvedRefs", "ResolvedRefs", "All references are resolved");

/**
 * BackendTLSPolicy: TLS on connections to a Service, with the CAs and names that verify it. A Service with an invalid policy gets
 * no connections: plaintext would reveal what should be encrypted.
 */
import { X509Certificate } from "node:crypto";
import { type BackendTlsPolicy, keyOfObject, type ObjectReference } from "../../kube/objects.ts";
import type { BackendTls } from "../../tls/tls-settings.ts";
import { defineIndex, defineQuery, type Read } from "../graph.ts";
import { isFalse, isTrue } from "./conditions.ts";
import type { ConditionDraft } from "./model.ts";
import { byAge } from "./precedence.ts";

/** How connections to a port of a Service are made: with these settings, or not at all. */
export type BackendTlsChoice = { readonly tls: BackendTls } | { readonly invalid: string };

/** Policies by `<namespace>/<service>`. */
const BY_SERVICE = defineIndex("BackendTLSPolicy", ({ metadata, spec }) => [
  ...new Set(
    spec.targetRefs
      .filter(({ group, kind }) => group === "" && kind === "Service")
      .map(({ name }) => `${metadata.namespace}/${name}`),
  ),
]);

/**
 * Key: `<namespace>/<service>[/<port name>]`; undefined: no policy. A policy for the port goes before one for the whole Service, of
 * equals the oldest (BackendTLSPolicySpec.targetRefs).
 */
export const backendTlsOf = defineQuery<BackendTlsChoice | undefined>("backendTlsOf", (read, key) => {
  const [namespace, service, port] = key.split("/");
  const candidates = read.find(BY_SERVICE, `${namespace}/${service}`);
  const ofPort = port === undefined ? undefined : winner(candidates, service ?? "", port);
  const policy = ofPort ?? winner(candidates, service ?? "", undefined);
  if (policy === undefined) return undefined;
  const { tls, conditions } = read.query(translatedBackendTls, keyOfObject(policy));
  if (tls !== undefined) return { tls };
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
        (each) => each.kind === "Service" && each.name === service && (each.sectionName || undefined) === section,
      ),
    )
    .sort(byAge)[0];
}

/** For each target of a policy that another one has: the key of that other policy. */
export function conflictsOf(read: Read, policy: BackendTlsPolicy): readonly string[] {
  return policy.spec.targetRefs.flatMap(({ group, kind, name, sectionName }) => {
    if (group !== "" || kind !== "Service") return [];
    const candidates = read.find(BY_SERVICE, `${policy.metadata.namespace}/${name}`);
    const first = winner(candidates, name, sectionName || undefined);
    return first === undefined || first.metadata.name === policy.metadata.name ? [] : [keyOfObject(first)];
  });
}

interface TranslatedBackendTls {
  /** Absent: invalid. */
  readonly tls?: BackendTls;
  /** Accepted and ResolvedRefs, as far as the policy itself decides them. */
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
    const message = `wellKnownCACertificates ${JSON.stringify(wellKnownCACertificates)} is not known; use System`;
    return { conditions: [isFalse("Accepted", "Invalid", message), RESOLVED] };
  }
  const results = caCertificateRefs.map((ref) => readCa(read, policy.metadata.namespace, ref));
  const problems = results.flatMap((each) => ("pem" in each ? [] : [each]));
  const pems = results.flatMap((each) => ("pem" in each ? [each.pem] : []));
  const [first] = problems;
  const all = problems.map(({ message }) => message).join("; ");
  const resolved = first === undefined ? RESOLVED : isFalse("ResolvedRefs", first.reason, all);
  if (pems.length === 0) return { conditions: [isFalse("Accepted", "NoValidCACertificate", all), resolved] };
  return { tls: { ...settings, root: pems.join("\n") }, conditions: [ACCEPTED, resolved] };
});

const ACCEPTED = isTrue("Accepted", "Accepted", "Policy is accepted");
const RESOLVED = isTrue("ResolvedRefs", "ResolvedRefs", "All references are resolved");

type Ca =
  | { readonly pem: string }
  | { readonly reason: "InvalidKind" | "InvalidCACertificateRef"; readonly message: string };

/** The certificates under `ca.crt` of a ConfigMap, which the Gateway API asks for, or of a Secret. */
function readCa(read: Read, namespace: string, { group, kind, name }: ObjectReference): Ca {
  const known = group === "" && (kind === "ConfigMap" || kind === "Secret");
  if (!known)
    return {
      reason: "InvalidKind",
      message: `${kind} of group "${group}" cannot hold CAs; refer to a ConfigMap or Secret`,
    };
  const where = `${kind} ${namespace}/${name}`;
  const bad = (what: string): Ca => ({ reason: "InvalidCACertificateRef", message: `${where} ${what}` });
  const object = read.get(kind, `${namespace}/${name}`);
  if (object === undefined) return bad("does not exist");
  const value = object.data?.["ca.crt"];
  if (value === undefined) return bad("has no key ca.crt");
  const pem = kind === "Secret" ? Buffer.from(value, "base64").toString("utf8") : value;
  return isCertificates(pem) ? { pem } : bad("has no valid certificate in ca.crt; expected PEM");
}

/** Whether a text consists of certificates, at least one. */
function isCertificates(pem: string): boolean {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const block of blocks) new X509Certificate(block);
  } catch {
    return false;
  }
  return blocks.length > 0;
}

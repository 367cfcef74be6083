/** TLS of listeners: their certificates, and the client certificates that `spec.tls.frontend` of the Gateway demands. */
import type { FrontendTls, Gateway } from "../../../kube/objects.ts";
import { checkTlsServer } from "../../../tls/tls-check.ts";
import type { CertificateAndKey, TlsServer } from "../../../tls/tls-settings.ts";
import type { FrontendInput } from "../../../translation/schema/frontend.ts";
import type { Read } from "../../graph/graph.ts";
import { type Loaded, loadCaBundle, loadCertificate, type Referrer } from "../cluster/secrets.ts";
import type { ListenerModel, Problem } from "../model/model.ts";
import type { Declaration } from "./listeners.ts";

export interface ListenerTls {
  /** Absent: none is needed, or it cannot be served. */
  readonly tls?: NonNullable<ListenerModel["tls"]>;
  /** Why the listener is not accepted. */
  readonly problem?: Problem;
  /** Why a reference is not resolved. */
  readonly unresolved?: Problem;
}

const NO_TLS: ListenerTls = {};

export function translateListenerTls(
  read: Read,
  { spec, listenerSet, ingress, namespace }: Declaration,
  gateway: Gateway,
): ListenerTls {
  const { protocol, tls } = spec;
  if (protocol !== "HTTPS" && protocol !== "TLS") return NO_TLS;
  if (protocol === "TLS" && tls?.mode === "Passthrough") return { tls: "passthrough" };
  const owner = listenerSet !== undefined ? "ListenerSet" : ingress !== undefined ? "Ingress" : "Gateway";
  const from: Referrer = { kind: owner, namespace };
  const certificates = (tls?.certificateRefs ?? []).map((reference) => loadCertificate(read, from, reference));
  const [first, ...others] = valuesOf(certificates);
  const unresolved =
    certificates.length === 0
      ? { reason: "InvalidCertificateRef", message: "The listener needs a certificate; add tls.certificateRefs" }
      : firstProblem(certificates, { invalid: "InvalidCertificateRef", invalidKind: "InvalidCertificateRef" });
  const clients = protocol === "HTTPS" ? clientCertificates(read, gateway, spec.port) : undefined;
  const problems = {
    ...((unresolved ?? clients?.unresolved) !== undefined && { unresolved: unresolved ?? clients?.unresolved }),
    ...(clients?.problem !== undefined && { problem: clients.problem }),
  } as Pick<ListenerTls, "problem" | "unresolved">;
  if (first === undefined || clients?.problem !== undefined) return problems;
  return { ...problems, tls: server(first, others, clients?.settings) };
}

function server(
  identity: CertificateAndKey,
  otherCertificates: readonly CertificateAndKey[],
  clients: ClientSettings | undefined,
): TlsServer {
  return { ...identity, ...(otherCertificates.length > 0 && { otherCertificates }), ...clients };
}

type ClientSettings = Pick<TlsServer, "clientCa" | "clientCertificates">;

interface Clients {
  readonly settings?: ClientSettings;
  readonly problem?: Problem;
  readonly unresolved?: Problem;
}

/** Of HTTPS listeners only (Gateway, `spec.tls.frontend`); settings of a port replace the default ones. */
function clientCertificates(read: Read, gateway: Gateway, port: number): Clients | undefined {
  const validation = frontendTls(gateway, port)?.validation;
  if (validation === undefined) return undefined;
  const from: Referrer = { kind: "Gateway", namespace: gateway.metadata.namespace };
  const bundles = (validation.caCertificateRefs ?? []).map((reference) => loadCaBundle(read, from, reference));
  const usable = valuesOf(bundles);
  const reasons = { invalid: "InvalidCACertificateRef", invalidKind: "InvalidCACertificateKind" };
  const unresolved = firstProblem(bundles, reasons);
  if (usable.length === 0) {
    const message = unresolved?.message ?? "The validation of spec.tls.frontend lists no caCertificateRefs";
    return { problem: { reason: "NoValidCACertificate", message }, ...(unresolved !== undefined && { unresolved }) };
  }
  return {
    settings: {
      clientCa: usable.join(""),
      ...(validation.mode === "AllowInsecureFallback" && { clientCertificates: "optional" }),
    },
    ...(unresolved !== undefined && { unresolved }),
  };
}

function frontendTls({ spec }: Gateway, port: number): FrontendTls | undefined {
  const { default: common, perPort = [] } = spec.tls?.frontend ?? {};
  const own = perPort.find((each) => each.port === port);
  return own === undefined ? common : own.tls;
}

/**
 * With the versions, suites, groups and protocols of the frontend. If they leave nothing to agree on, such as a lowest version above the
 * highest, only the lowest version is applied: the listener would not start.
 */
export function withFrontendTls(
  tls: TlsServer,
  { minVersion, maxVersion, cipherSuites, keyExchangeGroups, alpn }: FrontendDefaults,
): TlsServer {
  const lowest: TlsServer = { ...tls, ...(minVersion !== undefined && { minVersion: versionOf(minVersion) }) };
  const merged: TlsServer = {
    ...lowest,
    ...(maxVersion !== undefined && { maxVersion: versionOf(maxVersion) }),
    ...(cipherSuites !== undefined && { cipherSuites }),
    ...(keyExchangeGroups !== undefined && { keyExchangeGroups }),
    ...(alpn !== undefined && { alpn }),
  };
  return checkTlsServer(merged) === undefined ? merged : lowest;
}

type FrontendDefaults = NonNullable<FrontendInput["tls"]>;

function versionOf(text: NonNullable<FrontendDefaults["minVersion"]>): NonNullable<TlsServer["minVersion"]> {
  return text === "TLS_V1_3" ? "TLSv1.3" : "TLSv1.2";
}

/** Whether some clients need no valid certificate although certificates are validated. */
export function hasInsecureFallback({ spec }: Gateway): boolean {
  const { default: common, perPort = [] } = spec.tls?.frontend ?? {};
  return [common, ...perPort.map(({ tls }) => tls)].some((tls) => tls?.validation?.mode === "AllowInsecureFallback");
}

function valuesOf<T>(loaded: readonly Loaded<T>[]): readonly T[] {
  return loaded.flatMap((each) => (each.ok ? [each.value] : []));
}

function firstProblem(
  loaded: readonly Loaded<unknown>[],
  reasons: { readonly invalid: string; readonly invalidKind: string },
): Problem | undefined {
  for (const each of loaded)
    if (!each.ok) {
      const reason = each.why === "notPermitted" ? "RefNotPermitted" : reasons[each.why];
      return { reason, message: each.message };
    }
  for (const each of loaded)
    if (each.ok && each.problem !== undefined) return { reason: reasons.invalid, message: each.problem };
  return undefined;
}

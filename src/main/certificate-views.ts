import { X509Certificate } from "node:crypto";
import type { CertificateStep } from "../acme/certificates.ts";
import type { ManagedCertificate } from "../acme/settings.ts";
import type { CertificatesAnswer, CertificateView } from "../admin/plane/certificates.ts";
import type { PendingCertificates } from "../admin/plane/config-status.ts";
import type { Ir, Listener } from "../ir/ir.ts";
import { counter, type ExtraMetric } from "../telemetry/prometheus.ts";
import type { CertificateAndKey, TlsServer } from "../tls/tls-settings.ts";

/** What comes next for a certificate that the gateway orders; undefined if that is not known yet. */
type StepOf = (certificate: ManagedCertificate) => CertificateStep | undefined;

interface Facts extends Pick<CertificateView, "names" | "issuer" | "validFrom" | "expires"> {
  readonly from: number;
  readonly to: number;
}

/** By the pair of the configuration, so that certificates are parsed once. */
const known = new WeakMap<CertificateAndKey, Facts>();

/** The certificates of all listeners; one that several listeners have is shown once. */
export function certificateViews({ binds }: Pick<Ir, "binds">, stepOf: StepOf, now = Date.now()): CertificatesAnswer {
  const views = new Map<string, CertificateView>();
  for (const { listeners } of binds)
    for (const listener of listeners)
      for (const view of viewsOf(listener, stepOf, now)) {
        const { listeners: own, ...rest } = view;
        const identity = JSON.stringify(rest);
        views.set(identity, { ...view, listeners: [...(views.get(identity)?.listeners ?? []), ...own] });
      }
  const byExpiry = (a: CertificateView, b: CertificateView): number => (a.expires ?? "").localeCompare(b.expires ?? "");
  return { certificates: [...views.values()].sort(byExpiry) };
}

/** How many of the certificates that are pending `/config/status` lists. */
const SHOWN = 50;

/** Those that the gateway orders and that need attention; undefined if it orders none. */
export function pendingCertificates(frame: Pick<Ir, "binds">, stepOf: StepOf): PendingCertificates | undefined {
  const managed = frame.binds.flatMap(({ listeners }) => listeners).filter(({ acme }) => acme !== undefined);
  if (managed.length === 0) return undefined;
  const found = managed
    .flatMap((listener) => viewsOf(listener, stepOf, Date.now()))
    .filter(({ state, lastError }) => state === "pending" || lastError !== null)
    .map(({ names: [name = ""], state, next, lastError }) => ({ name, state, next, lastError }))
    .sort((a, b) => a.name.localeCompare(b.name));
  return { count: found.length, first: found.slice(0, SHOWN) };
}

/** Orders by name and result; no metric without certificates that the gateway orders. */
export function orderMetrics({ binds }: Pick<Ir, "binds">, stepOf: StepOf): ExtraMetric[] {
  const samples = new Map<string, { labels: Record<string, string>; value: number }>();
  for (const { acme } of binds.flatMap(({ listeners }) => listeners)) {
    const step = acme && stepOf(acme);
    if (acme === undefined || step === undefined) continue;
    for (const result of ["issued", "failed"] as const) {
      const labels = { name: acme.name, directory: acme.settings.directory, result };
      samples.set(JSON.stringify(labels), { labels, value: step[result] });
    }
  }
  if (samples.size === 0) return [];
  return [counter("tracegate_certificate_orders_total", "Orders of certificates by ACME.", [...samples.values()])];
}

function viewsOf({ key, tls, acme }: Listener, stepOf: StepOf, now: number): CertificateView[] {
  if (tls === undefined) return [];
  const listeners = [key];
  const step = acme && stepOf(acme);
  const managed = {
    next: acme === undefined ? null : { step: step?.step ?? "wait", at: isoOf(step?.at) },
    lastError: errorOf(step),
  };
  if (tls.pending !== undefined) {
    const { name, until } = tls.pending;
    const facts = { names: [name], issuer: null, validFrom: null, expires: null };
    return [{ ...facts, listeners, source: "acme", state: "pending", untilIssued: until, ...managed }];
  }
  return pairsOf(tls).map((pair) => {
    const { from, to, ...facts } = factsOf(pair);
    const state = to <= now ? "expired" : from > now ? "early" : "valid";
    const source = acme !== undefined ? "acme" : tls.dynamicCa !== undefined ? "dynamicCa" : "static";
    return { ...facts, listeners, source, state, ...managed };
  });
}

function pairsOf(tls: TlsServer): readonly CertificateAndKey[] {
  return [tls, ...(tls.otherCertificates ?? [])];
}

function factsOf(pair: CertificateAndKey): Facts {
  let facts = known.get(pair);
  if (facts === undefined) {
    const { subject, subjectAltName, issuer, validFromDate, validToDate } = new X509Certificate(pair.cert);
    const alternative = (subjectAltName ?? "").split(", ").filter(Boolean);
    facts = {
      names: alternative.length === 0 ? [nameIn(subject)] : alternative.map((each) => each.replace(/^[^:]*:/, "")),
      issuer: nameIn(issuer),
      validFrom: validFromDate.toISOString(),
      expires: validToDate.toISOString(),
      from: validFromDate.getTime(),
      to: validToDate.getTime(),
    };
    known.set(pair, facts);
  }
  return facts;
}

/** Organization and common name of a distinguished name, as Node.js writes it in lines. */
function nameIn(lines: string): string {
  const parts = (lines ?? "").split("\n");
  const of = (type: string): string[] =>
    parts.flatMap((each) => (each.startsWith(type) ? each.slice(type.length) : []));
  return [...of("O="), ...of("CN=")].join(", ");
}

function errorOf(step: CertificateStep | undefined): CertificateView["lastError"] {
  if (step?.failure === undefined) return null;
  const { at, message, count } = step.failure;
  return { at, message, count };
}

function isoOf(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString();
}

/** When a certificate is renewed: as the server says (RFC 9773), else after two thirds of its lifetime. */
import { createHash, type X509Certificate } from "node:crypto";
import { isObject } from "../base/fields.ts";
import { authorityKeyIdentifier } from "../tls/x509/issuer.ts";
import type { AcmeServer } from "./acme-server.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** Limits of the time until renewal information is asked for again, whatever the server says (RFC 9773 4.3.2). */
const MIN_ASK_MS = MINUTE_MS;
const MAX_ASK_MS = DAY_MS;
/** If the server does not say when. */
const DEFAULT_ASK_MS = 6 * 60 * MINUTE_MS;
/** Certificates that were ordered together are renewed spread over this share of their lifetime. */
const SPREAD = 0.05;
/** No certificate is renewed before this share of its lifetime, nor after the other one. */
const SOONEST = 0.01;
const LATEST = 0.9;

/** When the server wants a certificate to be renewed. Times are milliseconds since 1970. */
export interface RenewalInfo {
  /** Of the certificate that it is about; see `certificateId`. */
  readonly id: string;
  /** A random time in the window that the server suggests, chosen once for each window. */
  readonly at: number;
  readonly window: readonly [start: number, end: number];
  readonly askAgainAt: number;
}

/** Identifies a certificate to its server (RFC 9773 4.1); undefined if the certificate does not name its issuer's key. */
export function certificateId(certificate: X509Certificate): string | undefined {
  const issuer = authorityKeyIdentifier(certificate.raw);
  if (issuer === undefined) return undefined;
  const serial = Buffer.from(certificate.serialNumber, "hex");
  // As in DER, where a high bit that is set would make the number negative.
  const encoded = (serial[0] ?? 0) < 0x80 ? serial : Buffer.concat([Buffer.of(0), serial]);
  return `${issuer.toString("base64url")}.${encoded.toString("base64url")}`;
}

/** Asks the server when to renew. Undefined: it does not say. `before`: its last answer. Rejects with an AcmeError. */
export async function renewalInfo(
  server: AcmeServer,
  id: string,
  before: RenewalInfo | undefined,
  now: number,
): Promise<RenewalInfo | undefined> {
  const { renewalInfo: base } = await server.directory();
  if (base === undefined) return undefined;
  const { body, retryAfter = DEFAULT_ASK_MS } = await server.get(`${base.replace(/\/$/, "")}/${id}`);
  const suggested = isObject(body) && isObject(body.suggestedWindow) ? body.suggestedWindow : {};
  const [start, end] = [Date.parse(String(suggested.start)), Date.parse(String(suggested.end))];
  // A window that ends before it begins must be ignored (RFC 9773 4.2).
  if (!(start < end)) return undefined;
  const same = before?.id === id && before.window[0] === start && before.window[1] === end;
  return {
    id,
    at: same ? before.at : Math.round(start + Math.random() * (end - start)),
    window: [start, end],
    askAgainAt: now + Math.min(MAX_ASK_MS, Math.max(MIN_ASK_MS, retryAfter)),
  };
}

/** When to renew a certificate, milliseconds since 1970. */
export function renewAt(
  name: string,
  { validFromDate, validToDate }: X509Certificate,
  info: RenewalInfo | undefined,
): number {
  const [from, to] = [validFromDate.getTime(), validToDate.getTime()];
  const lifetime = to - from;
  const byAge = from + lifetime * (2 / 3 + SPREAD * shareOf(name));
  // A server whose times are wrong must neither let the certificate expire nor get one order after the other.
  return info === undefined ? byAge : Math.max(from + lifetime * SOONEST, Math.min(info.at, from + lifetime * LATEST));
}

/** A number from 0 to 1 that is the same for a name in each process. */
function shareOf(name: string): number {
  return createHash("sha256").update(name).digest().readUInt32BE(0) / 2 ** 32;
}

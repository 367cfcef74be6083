/**
 * A client's certificate in a rehearsal, where nobody has its key. OpenSSL checks certificates only in handshakes of clients that prove
 * their key, so the checks are made here, with the codes that Node.js has for their failures.
 */
import { X509Certificate } from "node:crypto";

/** Key usages of a client's certificate (RFC 5280 4.2.1.12): TLS client authentication, or any. */
const CLIENT_USAGES: ReadonlySet<string> = new Set(["1.3.6.1.5.5.7.3.2", "2.5.29.37.0"]);
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates of PEM text, the client's own first. Throws if one cannot be parsed. */
export function certificatesIn(pem: string): X509Certificate[] {
  return (pem.match(CERTIFICATE) ?? []).map((each) => new X509Certificate(each));
}

/** Why a listener with this CA rejects the chain, such as `CERT_HAS_EXPIRED`; undefined: it does not. `now`: milliseconds since 1970. */
export function whyRejected(
  [leaf, ...others]: readonly X509Certificate[],
  clientCa: string,
  now = Date.now(),
): string | undefined {
  if (leaf === undefined) return "no certificate";
  const trusted = certificatesIn(clientCa);
  const { keyUsage: usages } = leaf;
  let current = leaf;
  for (let depth = 0; depth <= others.length; depth++) {
    const problem = outsideValidity(current, now);
    if (problem !== undefined) return problem;
    const anchor = trusted.find((each) => issued(each, current));
    if (anchor !== undefined) {
      if (usages !== undefined && !usages.some((usage) => CLIENT_USAGES.has(usage))) return "INVALID_PURPOSE";
      return outsideValidity(anchor, now);
    }
    const next = others.find((each) => each !== current && issued(each, current));
    if (next === undefined) break;
    current = next;
  }
  return "UNABLE_TO_GET_ISSUER_CERT_LOCALLY";
}

function issued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function outsideValidity({ validFromDate, validToDate }: X509Certificate, now: number): string | undefined {
  if (now < validFromDate.getTime()) return "CERT_NOT_YET_VALID";
  return now > validToDate.getTime() ? "CERT_HAS_EXPIRED" : undefined;
}

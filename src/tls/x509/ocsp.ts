import { createHash, type X509Certificate } from "node:crypto";
import { oid, type Read, readElements } from "./der.ts";

/** What a server may send in the handshake to prove that its certificate is not revoked (RFC 6066 8). */
export interface OcspStaple {
  /** The signed response of the CA, DER. */
  readonly response: Buffer;
  /** Milliseconds since 1970 at which clients begin to reject it; infinite = the response does not expire. */
  readonly expires: number;
}

const BASIC = oid("1.3.6.1.5.5.7.48.1.1");
/** RFC 6960 4.2.1, responseStatus. */
const STATUSES = ["successful", "malformedRequest", "internalError", "tryLater", "", "sigRequired", "unauthorized"];
/** The algorithms that hash issuer names in responses, by their encoded identifiers. */
const HASHES = new Map([
  [oid("1.3.14.3.2.26").toString("hex"), "sha1"],
  [oid("2.16.840.1.101.3.4.2.1").toString("hex"), "sha256"],
]);
const EXPLICIT_0 = 0xa0;
const GOOD = 0x80;
const REVOKED = 0xa1;

/**
 * Reads the response of a CA about `certificate` (RFC 6960 4.2.1). Throws an Error that says what is wrong with it, unless it has
 * merely expired. Clients verify its signature, because they know the CA.
 */
export function readOcspStaple(response: Buffer, certificate: X509Certificate): OcspStaple {
  const [status, bytes] = inside(response);
  if (status?.tag !== 0x0a) throw new Error(NO_RESPONSE);
  const code = status.content[0] ?? 0;
  if (code !== 0) throw new Error(`the responder returned an error, ${STATUSES[code] || code}; fetch it again`);
  const [type, basic] = inside(part(readElements(part(bytes).content)[0]).whole);
  if (!part(type).whole.equals(BASIC)) throw new Error(NO_RESPONSE);
  const [data] = inside(part(basic).content);
  const singles = readElements(part(data).content).filter(({ tag }) => tag === 0x30);
  const single = singles.flatMap(({ content }) => readElements(content)).find((each) => isAbout(each, certificate));
  if (single === undefined)
    throw new Error(`it is about another certificate, not ${certificate.serialNumber}; fetch it for this one`);
  const [_id, state, _thisUpdate, next] = readElements(single.content);
  if (state?.tag === REVOKED) throw new Error("it says that the certificate is revoked; replace the certificate");
  if (state?.tag !== GOOD) throw new Error("it says that the CA does not know the certificate");
  const expires = next?.tag === EXPLICIT_0 ? timeOf(part(readElements(next.content)[0])) : Number.POSITIVE_INFINITY;
  return { response, expires };
}

const NO_RESPONSE = "it is not an OCSP response; expected DER, as `openssl ocsp -respout` writes it";

/** The elements of the sequence that fills `bytes`. */
function inside(bytes: Buffer): Read[] {
  try {
    const [outer, more] = readElements(bytes);
    if (outer?.tag !== 0x30 || more !== undefined) throw new Error(NO_RESPONSE);
    return readElements(outer.content);
  } catch {
    throw new Error(NO_RESPONSE);
  }
}

function part(read: Read | undefined): Read {
  if (read === undefined) throw new Error(NO_RESPONSE);
  return read;
}

/** Whether a SingleResponse names the certificate: by its number, and its issuer by the hash of the name. */
function isAbout({ content }: Read, certificate: X509Certificate): boolean {
  const [id] = readElements(content);
  const [algorithm, issuerName, _issuerKey, serial] = readElements(part(id).content);
  const [hashed] = readElements(part(algorithm).content);
  const hash = HASHES.get(part(hashed).whole.toString("hex"));
  if (hash === undefined) return false;
  // version, serialNumber, signature, issuer: the first is present in all certificates with extensions.
  const [tbs] = inside(certificate.raw);
  const fields = readElements(part(tbs).content);
  const first = fields[0]?.tag === EXPLICIT_0 ? 1 : 0;
  const issuer = createHash(hash)
    .update(part(fields[first + 2]).whole)
    .digest();
  return part(serial).content.equals(part(fields[first]).content) && part(issuerName).content.equals(issuer);
}

/** GeneralizedTime, always `YYYYMMDDHHMMSSZ` (RFC 5280 4.1.2.5.2). */
function timeOf({ content }: Read): number {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(content.toString("latin1")) ?? [];
  const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  if (Number.isNaN(time)) throw new Error(NO_RESPONSE);
  return time;
}

import { createHash, createPrivateKey, type KeyObject, sign, X509Certificate } from "node:crypto";
import { oid, type Read, readElements, sequence } from "./der.ts";

/** How a CA's key signs: the algorithm as certificates name it, and its hash. */
interface Signing {
  readonly algorithm: Buffer;
  readonly hash: "sha256" | "sha384";
}

const NULL = Buffer.of(0x05, 0x00);
/** RFC 8017 A.2.4 and RFC 5758 3.2, by the curve's name in OpenSSL. */
const RSA: Signing = { algorithm: sequence(oid("1.2.840.113549.1.1.11"), NULL), hash: "sha256" };
const ECDSA: Readonly<Record<string, Signing>> = {
  prime256v1: { algorithm: sequence(oid("1.2.840.10045.4.3.2")), hash: "sha256" },
  secp384r1: { algorithm: sequence(oid("1.2.840.10045.4.3.3")), hash: "sha384" },
};

const SUBJECT_KEY_IDENTIFIER = oid("2.5.29.14");
const AUTHORITY_KEY_IDENTIFIER = oid("2.5.29.35");
const KEY_IDENTIFIER = 0x80;
const EXPLICIT_EXTENSIONS = 0xa3;
const EXPLICIT_VERSION = 0xa0;

/** A CA that certificates can be signed with. */
export interface Issuer {
  /** As the CA's certificate writes it: verifiers compare byte by byte. */
  readonly subject: Buffer;
  readonly keyIdentifier: Buffer;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly algorithm: Buffer;
  readonly sign: (data: Buffer) => Buffer;
}

/** The CA of a certificate and its key in PEM. Throws an Error when `issuerProblem` finds a problem. */
export function readIssuer(cert: string, key: string): Issuer {
  const certificate = new X509Certificate(cert);
  const privateKey = createPrivateKey(key);
  const signing = signingOf(privateKey);
  if (signing === undefined) throw new Error(UNKNOWN_KEY);
  const { subject, publicKey, extensions } = takeApart(certificate.raw);
  return {
    subject: subject.whole,
    keyIdentifier: extensions.get(SUBJECT_KEY_IDENTIFIER.toString("hex")) ?? identify(publicKey),
    notBefore: certificate.validFromDate,
    notAfter: certificate.validToDate,
    algorithm: signing.algorithm,
    sign: (data) => sign(signing.hash, data, privateKey),
  };
}

/** What is wrong with a certificate and the key that belongs to it, when they are to be a CA; `now` in milliseconds. */
export function issuerProblem(
  certificate: X509Certificate,
  key: KeyObject,
  now: number,
): { readonly field: "cert" | "key"; readonly message: string } | undefined {
  // OpenSSL requires basicConstraints with CA:TRUE, and keyCertSign if there is a keyUsage.
  if (!certificate.ca) return { field: "cert", message: NO_CA };
  const { validFromDate: from, validToDate: to } = certificate;
  if (to.getTime() <= now)
    return { field: "cert", message: `the CA's certificate expired at ${to.toISOString()}; replace cert and key` };
  if (from.getTime() > now)
    return {
      field: "cert",
      message: `the CA's certificate is not valid before ${from.toISOString()}; wait, or set this machine's clock`,
    };
  return signingOf(key) === undefined ? { field: "key", message: UNKNOWN_KEY } : undefined;
}

const NO_CA =
  "the certificate is not that of a CA, so clients would reject what it signs; use a CA (basicConstraints CA:TRUE, keyUsage " +
  "keyCertSign), or use mode: static with the certificate of a host";
const UNKNOWN_KEY = "a CA with this kind of key cannot be used; its key has to be RSA, or ECDSA on P-256 or P-384";

function signingOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): Signing | undefined {
  if (asymmetricKeyType === "rsa") return RSA;
  return asymmetricKeyType === "ec" ? ECDSA[asymmetricKeyDetails?.namedCurve ?? ""] : undefined;
}

/** The parts of a certificate (RFC 5280 4.1) that those it signs refer to. */
function takeApart(der: Buffer): { subject: Read; publicKey: Buffer; extensions: ReadonlyMap<string, Buffer> } {
  const [certificate] = readElements(der);
  const [tbs] = readElements(part(certificate).content);
  const fields = readElements(part(tbs).content);
  // version, serialNumber, signature, issuer, validity, subject, subjectPublicKeyInfo
  const first = fields[0]?.tag === EXPLICIT_VERSION ? 1 : 0;
  const [, publicKey] = readElements(part(fields[first + 5]).content);
  const [list] = readElements(fields.find(({ tag }) => tag === EXPLICIT_EXTENSIONS)?.content ?? Buffer.alloc(0));
  const extensions = readElements(list?.content ?? Buffer.alloc(0)).map(({ content }) => {
    const [id, ...rest] = readElements(content);
    // In an OCTET STRING; a BOOLEAN may stand before it.
    const [value] = readElements(part(rest.at(-1)).content);
    return [part(id).whole.toString("hex"), part(value).content] as const;
  });
  return {
    subject: part(fields[first + 4]),
    // A BIT STRING: the first byte counts unused bits.
    publicKey: part(publicKey).content.subarray(1),
    extensions: new Map(extensions),
  };
}

/** The key identifier of the CA that issued a certificate (RFC 5280 4.2.1.1); undefined if it does not say. */
export function authorityKeyIdentifier(der: Buffer): Buffer | undefined {
  const list = takeApart(der).extensions.get(AUTHORITY_KEY_IDENTIFIER.toString("hex"));
  return list && readElements(list).find(({ tag }) => tag === KEY_IDENTIFIER)?.content;
}

function part(read: Read | undefined): Read {
  if (read === undefined) throw new Error("it lacks a part that every certificate has");
  return read;
}

/** RFC 5280 4.2.1.2, method 1. */
function identify(publicKey: Buffer): Buffer {
  return createHash("sha1").update(publicKey).digest();
}

/** Certificates (RFC 5280 4.1) from their parts, and what all that the gateway makes have in common. */
import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import {
  bitString,
  integer,
  octetString,
  oid,
  readElements,
  sequence,
  setOf,
  TRUE,
  tagged,
  time,
  utf8String,
} from "./der.ts";

const VERSION_3 = tagged(0, "explicit", integer(Buffer.of(2)));
const COMMON_NAME = oid("2.5.4.3");
/** ecdsa-with-SHA256 (RFC 5758 3.2). */
export const ECDSA_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));
/** `ub-common-name` of RFC 5280 A.1: longer names stand among the alternative names alone. */
export const MAX_COMMON_NAME = 64;
const SUBJECT_ALT_NAME = oid("2.5.29.17");
const DNS_NAME = 2;

/** The CA that signs. */
interface Signer {
  readonly subject: Uint8Array;
  readonly algorithm: Buffer;
  readonly sign: (data: Buffer) => Buffer;
}

interface CertificateFields {
  readonly subject: Buffer;
  /** SubjectPublicKeyInfo. */
  readonly publicKey: Buffer;
  /** Milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
  readonly extensions: readonly Buffer[];
}

/** The certificate in PEM. `serialNumber`: hexadecimal, as other tools write it. */
export function signCertificate(
  signer: Signer,
  { subject, publicKey, notBefore, notAfter, extensions }: CertificateFields,
): { readonly cert: string; readonly serialNumber: string } {
  const serial = randomSerial();
  const toBeSigned = sequence(
    VERSION_3,
    integer(serial),
    signer.algorithm,
    signer.subject,
    sequence(time(new Date(notBefore)), time(new Date(notAfter))),
    subject,
    publicKey,
    tagged(3, "explicit", sequence(...extensions)),
  );
  const certificate = sequence(toBeSigned, signer.algorithm, bitString(signer.sign(toBeSigned)));
  return { cert: pem(certificate), serialNumber: serial.toString("hex").toUpperCase() };
}

/** An ECDSA key on P-256: SubjectPublicKeyInfo, and PKCS #8 in PEM. */
export function makeKey(): { readonly publicKey: Buffer; readonly privateKey: string } {
  return generateKeyPairSync("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "der" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
}

/** undefined: a subject without a name. */
export function subjectOf(commonName: string | undefined): Buffer {
  return commonName === undefined ? sequence() : sequence(setOf(sequence(COMMON_NAME, utf8String(commonName))));
}

export function extension(id: Buffer, value: Buffer, critical: boolean): Buffer {
  return critical ? sequence(id, TRUE, octetString(value)) : sequence(id, octetString(value));
}

/** The extension with DNS names; critical if there is no subject (RFC 5280 4.2.1.6). */
export function altNames(names: readonly string[], critical = false): Buffer {
  const encoded = names.map((name) => tagged(DNS_NAME, "primitive", Buffer.from(name, "latin1")));
  return extension(SUBJECT_ALT_NAME, sequence(...encoded), critical);
}

/** The key identifier of a SubjectPublicKeyInfo (RFC 5280 4.2.1.2, method 1). */
export function keyIdentifierOf(publicKey: Buffer): Buffer {
  const [info] = readElements(publicKey);
  const bits = readElements(info?.content ?? Buffer.alloc(0))[1]?.content ?? Buffer.alloc(0);
  // A BIT STRING: the first byte counts unused bits.
  return createHash("sha1").update(bits.subarray(1)).digest();
}

/**
 * Positive, and 126 random bits. The CA/Browser Forum requires at least 64 (7.1): with predictable serials, a hash collision
 * could forge a certificate. At most 20 bytes are allowed (RFC 5280 4.1.2.2).
 */
function randomSerial(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes;
}

/** RFC 7468 2: lines of 64 characters. */
function pem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

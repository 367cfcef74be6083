import { generateKeyPairSync, randomBytes } from "node:crypto";
import { bitString, integer, octetString, oid, sequence, setOf, TRUE, tagged, time, utf8String } from "./der.ts";
import type { Issuer } from "./issuer.ts";

/** Clocks of clients may be late by this much. */
const BACKDATE_MS = 60 * 60_000;
const LIFETIME_MS = 24 * 60 * 60_000;
/** `ub-common-name` of RFC 5280 A.1: longer names stand among the alternative names alone. */
const MAX_COMMON_NAME = 64;

/** RFC 5280 4.1. */
const VERSION_3 = tagged(0, "explicit", integer(Buffer.of(2)));
const COMMON_NAME = oid("2.5.4.3");
const SUBJECT_ALT_NAME = oid("2.5.29.17");
const DNS_NAME = 2;
const AUTHORITY_KEY_IDENTIFIER = oid("2.5.29.35");
/** Bit 0, digitalSignature: an ECDSA key does nothing else in TLS. */
const KEY_USAGE = extension(oid("2.5.29.15"), bitString(Buffer.of(0x80), 7), true);
/** serverAuth. */
const EXTENDED_KEY_USAGE = extension(oid("2.5.29.37"), sequence(oid("1.3.6.1.5.5.7.3.1")), false);

/** A certificate with its key, both PEM. */
export interface Leaf {
  readonly cert: string;
  readonly key: string;
  /** Hexadecimal, as other tools write it. */
  readonly serialNumber: string;
  /** Milliseconds since 1970. */
  readonly notAfter: number;
}

/**
 * A certificate for one DNS name, which has to be one, with an ECDSA key (P-256) of its own: valid from an hour ago for 24
 * hours, or for as long as the CA if that is less. Throws an Error when the CA is not valid at `now` (milliseconds).
 */
export function mintLeaf(issuer: Issuer, name: string, now: number): Leaf {
  const notBefore = Math.max(now - BACKDATE_MS, issuer.notBefore.getTime());
  const notAfter = Math.min(now + LIFETIME_MS, issuer.notAfter.getTime());
  if (notAfter <= now) throw new Error(`the CA's certificate expired at ${issuer.notAfter.toISOString()}`);
  const { publicKey, privateKey } = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "der" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  const serial = randomSerial();
  const named = name.length <= MAX_COMMON_NAME;
  const toBeSigned = sequence(
    VERSION_3,
    integer(serial),
    issuer.algorithm,
    issuer.subject,
    sequence(time(new Date(notBefore)), time(new Date(notAfter))),
    named ? sequence(setOf(sequence(COMMON_NAME, utf8String(name)))) : sequence(),
    publicKey,
    tagged(
      3,
      "explicit",
      sequence(
        KEY_USAGE,
        EXTENDED_KEY_USAGE,
        // Critical when there is no subject (RFC 5280 4.2.1.6).
        extension(SUBJECT_ALT_NAME, sequence(tagged(DNS_NAME, "primitive", Buffer.from(name, "latin1"))), !named),
        extension(AUTHORITY_KEY_IDENTIFIER, sequence(tagged(0, "primitive", issuer.keyIdentifier)), false),
      ),
    ),
  );
  const certificate = sequence(toBeSigned, issuer.algorithm, bitString(issuer.sign(toBeSigned)));
  const serialNumber = serial.toString("hex").toUpperCase();
  return { cert: pem(certificate), key: privateKey, serialNumber, notAfter };
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

function extension(id: Buffer, value: Buffer, critical: boolean): Buffer {
  return critical ? sequence(id, TRUE, octetString(value)) : sequence(id, octetString(value));
}

/** RFC 7468 2: lines of 64 characters. */
function pem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

import { altNames, extension, MAX_COMMON_NAME, makeKey, signCertificate, subjectOf } from "./certificate.ts";
import { bitString, oid, sequence, tagged } from "./der.ts";
import type { Issuer } from "./issuer.ts";

/** Clocks of clients may be slow by this much. */
const BACKDATE_MS = 60 * 60_000;
const LIFETIME_MS = 24 * 60 * 60_000;

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
 * A certificate for `name` and `others`, which must be DNS names, with a new ECDSA key (P-256): valid from an hour ago for 24
 * hours, or for as long as the CA if that is less. Throws an Error when the CA is not valid at `now` (milliseconds).
 */
export function mintLeaf(issuer: Issuer, name: string, now: number, others: readonly string[] = []): Leaf {
  const notBefore = Math.max(now - BACKDATE_MS, issuer.notBefore.getTime());
  const notAfter = Math.min(now + LIFETIME_MS, issuer.notAfter.getTime());
  if (notAfter <= now) throw new Error(`the CA's certificate expired at ${issuer.notAfter.toISOString()}`);
  const { publicKey, privateKey } = makeKey();
  const named = name.length <= MAX_COMMON_NAME;
  const { cert, serialNumber } = signCertificate(issuer, {
    subject: subjectOf(named ? name : undefined),
    publicKey,
    notBefore,
    notAfter,
    extensions: [
      KEY_USAGE,
      EXTENDED_KEY_USAGE,
      altNames([name, ...others], !named),
      extension(AUTHORITY_KEY_IDENTIFIER, sequence(tagged(0, "primitive", issuer.keyIdentifier)), false),
    ],
  });
  return { cert, key: privateKey, serialNumber, notAfter };
}

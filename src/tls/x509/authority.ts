import { sign } from "node:crypto";
import { ECDSA_SHA256, extension, keyIdentifierOf, makeKey, signCertificate, subjectOf } from "./certificate.ts";
import { bitString, octetString, oid, sequence, TRUE } from "./der.ts";

const BACKDATE_MS = 60 * 60_000;
const BASIC_CONSTRAINTS = extension(oid("2.5.29.19"), sequence(TRUE), true);
/** Bits 5 and 6: keyCertSign and cRLSign. */
const KEY_USAGE = extension(oid("2.5.29.15"), bitString(Buffer.of(0x06), 1), true);
const SUBJECT_KEY_IDENTIFIER = oid("2.5.29.14");

/** A new CA with an ECDSA key (P-256), both PEM; valid from an hour before `now` for `lifetime` milliseconds. */
export function makeAuthority(
  commonName: string,
  now: number,
  lifetime: number,
): { readonly cert: string; readonly key: string } {
  const { publicKey, privateKey } = makeKey();
  const subject = subjectOf(commonName);
  const signer = { subject, algorithm: ECDSA_SHA256, sign: (data: Buffer) => sign("sha256", data, privateKey) };
  const { cert } = signCertificate(signer, {
    subject,
    publicKey,
    notBefore: now - BACKDATE_MS,
    notAfter: now + lifetime,
    extensions: [
      BASIC_CONSTRAINTS,
      KEY_USAGE,
      extension(SUBJECT_KEY_IDENTIFIER, octetString(keyIdentifierOf(publicKey)), false),
    ],
  });
  return { cert, key: privateKey };
}

import { createHash, createPrivateKey, sign } from "node:crypto";
import {
  altNames,
  ECDSA_SHA256,
  extension,
  MAX_COMMON_NAME,
  makeKey,
  signCertificate,
  subjectOf,
} from "./certificate.ts";
import { octetString, oid } from "./der.ts";

/** id-pe-acmeIdentifier (RFC 8737 3). */
const ACME_IDENTIFIER = oid("1.3.6.1.5.5.7.1.31");
/** Clocks of clients may be slow by this much. */
const BACKDATE_MS = 60 * 60_000;
/** Of certificates that only wait for a real one. */
const LIFETIME_MS = 7 * 24 * 60 * 60_000;

/** A certificate with its key, both PEM. */
interface OwnCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate for a DNS name that is signed with its own key (P-256); valid from an hour before `now` for a week. */
export function makeSelfSigned(name: string, now: number, extensions: readonly Buffer[] = []): OwnCertificate {
  const { publicKey, privateKey } = makeKey();
  const key = createPrivateKey(privateKey);
  const subject = subjectOf(name.length <= MAX_COMMON_NAME ? name : undefined);
  const { cert } = signCertificate(
    { subject, algorithm: ECDSA_SHA256, sign: (data) => sign("sha256", data, key) },
    {
      subject,
      publicKey,
      notBefore: now - BACKDATE_MS,
      notAfter: now + LIFETIME_MS,
      extensions: [altNames([name]), ...extensions],
    },
  );
  return { cert, key: privateKey };
}

/** The certificate that a validation of `name` by tls-alpn-01 expects (RFC 8737 3). */
export function makeChallengeCertificate(name: string, keyAuthorization: string, now: number): OwnCertificate {
  const digest = createHash("sha256").update(keyAuthorization).digest();
  return makeSelfSigned(name, now, [extension(ACME_IDENTIFIER, octetString(digest), true)]);
}

import { sign } from "node:crypto";
import { altNames, ECDSA_SHA256, makeKey, subjectOf } from "./certificate.ts";
import { bitString, integer, oid, sequence, setOf, tagged } from "./der.ts";

/** extensionRequest (RFC 2985 5.4.2). */
const EXTENSION_REQUEST = oid("1.2.840.113549.1.9.14");

/** A certification request (RFC 2986, DER) for DNS names, with its new ECDSA key (P-256) in PEM. */
export function makeRequest(names: readonly string[]): { readonly request: Buffer; readonly key: string } {
  const { publicKey, privateKey } = makeKey();
  // Names stand among the alternative names alone: the common name is limited to 64 characters and not looked at.
  const extensions = sequence(altNames(names));
  const attributes = tagged(0, "explicit", sequence(EXTENSION_REQUEST, setOf(extensions)));
  const info = sequence(integer(Buffer.of(0)), subjectOf(undefined), publicKey, attributes);
  return { request: sequence(info, ECDSA_SHA256, bitString(sign("sha256", info, privateKey))), key: privateKey };
}

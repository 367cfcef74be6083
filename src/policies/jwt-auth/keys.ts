import { createPublicKey, type JsonWebKey, type KeyObject } from "node:crypto";

/** One key of a set, with the algorithms that tokens may use it with. */
export interface VerificationKey {
  readonly kid: string;
  readonly key: KeyObject;
  readonly algorithms: readonly string[];
}

interface Jwk extends JsonWebKey {
  readonly kid?: unknown;
  readonly use?: unknown;
  readonly alg?: unknown;
}

/** Bits. RFC 7518, sections 3.3 and 3.5, require at least as many. */
const MIN_RSA_BITS = 2048;

/**
 * Algorithms by type of key, so a token cannot choose one that does not fit its key (RFC 8725, section 3.1). Only asymmetric ones:
 * every reader of a set with an HMAC key could sign tokens, and a public key must never be taken for an HMAC secret. `none` is
 * not there. `EdDSA` is the older name of `Ed25519` (RFC 9864).
 */
const ALGORITHMS: Readonly<Record<string, readonly string[]>> = {
  RSA: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  "EC P-256": ["ES256"],
  "EC P-384": ["ES384"],
  "EC P-521": ["ES512"],
  "OKP Ed25519": ["EdDSA", "Ed25519"],
};

/**
 * The keys of a JWK set that can verify tokens. Keys for other purposes and of unknown types are ignored, as RFC 7517, section 5,
 * requires. Throws an Error with what is wrong with the set, or if it has no such key.
 */
export function parseKeys(jwks: string): VerificationKey[] {
  const keys = listOf(jwks).flatMap((jwk, i) => parseKey(jwk, i) ?? []);
  if (keys.length === 0)
    throw new Error("has no key that tokens can be verified with; RSA, EC and Ed25519 keys with a kid can be used");
  return keys;
}

/** The ids of all keys of a set that have one. Throws like `parseKeys` for text that is not a set. */
export function kidsOf(jwks: string): string[] {
  return listOf(jwks).flatMap(({ kid }) => (typeof kid === "string" ? kid : []));
}

function listOf(jwks: string): Jwk[] {
  let set: unknown;
  try {
    set = JSON.parse(jwks);
  } catch (cause) {
    throw new Error("is not JSON; a key set that is elsewhere is named by {file: PATH} or {url: URL}", { cause });
  }
  const keys = typeof set === "object" && set !== null ? (set as { keys?: unknown }).keys : undefined;
  if (!Array.isArray(keys)) throw new Error('is not a key set; write {"keys": [...]} (RFC 7517 5)');
  return keys.filter((key): key is Jwk => typeof key === "object" && key !== null);
}

function parseKey(jwk: Jwk, index: number): VerificationKey | undefined {
  const { kid, kty, crv, use, alg } = jwk;
  const all = ALGORITHMS[kty === "RSA" ? kty : `${kty} ${crv}`];
  if (all === undefined || typeof kid !== "string" || (use !== undefined && use !== "sig")) return undefined;
  if (jwk.d !== undefined)
    throw new Error(`has the private part of key ${JSON.stringify(kid)}; only the issuer should know it, remove d`);
  const algorithms = alg === undefined || kty === "OKP" ? all : all.filter((each) => each === alg);
  if (algorithms.length === 0) return undefined;
  let key: KeyObject;
  try {
    key = createPublicKey({ key: jwk, format: "jwk" });
  } catch (cause) {
    throw new Error(`key ${index} (${JSON.stringify(kid)}) cannot be read`, { cause });
  }
  const bits = key.asymmetricKeyDetails?.modulusLength;
  if (bits !== undefined && bits < MIN_RSA_BITS)
    throw new Error(`key ${JSON.stringify(kid)} has ${bits} bits; RSA keys need at least ${MIN_RSA_BITS}`);
  return { kid, key, algorithms };
}

import { createPrivateKey, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import type { JwtSigning } from "../../ir/policies.ts";

const BY_CURVE: Readonly<Record<string, string>> = { prime256v1: "ES256", secp384r1: "ES384", secp521r1: "ES512" };

/**
 * What gives a signed token; one is made for many requests and replaced after half of its time. Throws an Error that begins
 * with the field for a key that cannot be used; it shows nothing of the key.
 */
export function tokenSigner(config: JwtSigning, field: string): () => Promise<string> {
  if (config.key === undefined) return () => Promise.reject(new Error("the key could not be read"));
  const key = readKey(config.key, field);
  const algorithm = algorithmOf(key, config.algorithm, field);
  let current: Promise<string> | undefined;
  let until = 0;
  return () => {
    const now = Date.now();
    if (current === undefined || now >= until) {
      until = now + config.expiration / 2;
      const signed = sign(config, key, algorithm, now);
      signed.catch(() => {
        current = undefined;
      });
      current = signed;
    }
    return current;
  };
}

function sign(config: JwtSigning, key: KeyObject, alg: string, now: number): Promise<string> {
  const { keyId, issuer, subject, audiences, claims, expiration } = config;
  const issuedAt = Math.floor(now / 1000);
  const payload = {
    ...claims,
    ...(issuer !== undefined && { iss: issuer }),
    ...(subject !== undefined && { sub: subject }),
    ...(audiences !== undefined && { aud: [...audiences] }),
    iat: issuedAt,
    exp: issuedAt + Math.ceil(expiration / 1000),
  };
  return new SignJWT(payload)
    .setProtectedHeader({ alg, typ: "JWT", ...(keyId !== undefined && { kid: keyId }) })
    .sign(key);
}

function readKey(pem: string, field: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    throw new Error(`${field}.key: is no private key; write one in PEM without a password`);
  }
}

/** What the key can sign with; the configured one has to be among it. */
function algorithmOf(
  { asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject,
  wanted: string | undefined,
  field: string,
): string {
  const all = algorithmsOf(type, asymmetricKeyDetails?.namedCurve);
  const [usual] = all;
  if (usual === undefined)
    throw new Error(`${field}.key: keys of type ${type} cannot sign tokens; use RSA, EC or Ed25519`);
  if (wanted === undefined) return usual;
  if (!all.includes(wanted)) throw new Error(`${field}.algorithm: the key can be used with ${all.join(", ")} only`);
  return wanted;
}

function algorithmsOf(type: string | undefined, curve = ""): string[] {
  if (type === "rsa") return ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
  if (type === "ed25519") return ["EdDSA"];
  const algorithm = type === "ec" ? BY_CURVE[curve] : undefined;
  return algorithm === undefined ? [] : [algorithm];
}

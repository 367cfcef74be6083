import { createPrivateKey, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { type ConfigPath, PolicyError } from "../contract/policy-error.ts";
import type { JwtSigning, Signing } from "../schema/basic-backend-auth.ts";

/** Each curve has one algorithm (RFC 7518, section 3.4). */
const BY_CURVE: Readonly<Record<string, string>> = { prime256v1: "ES256", secp384r1: "ES384" };

/** Signs `claims` as a JWT (RFC 7519). `header`: fields of its header besides `alg`, `typ` and `kid`. */
type Sign = (claims: Readonly<Record<string, unknown>>, header?: Readonly<Record<string, unknown>>) => Promise<string>;

/**
 * Returns a function that signs tokens with the configured key. Throws PolicyError, whose path begins with `path`, for a key that
 * is invalid or does not fit the algorithm; the error contains nothing of the key. A key whose file could not be read fails each
 * request instead: that problem has been reported, and must not hide others.
 */
export function tokenSigner({ signingKey, alg, kid }: Signing, path: ConfigPath): Sign {
  if (signingKey === undefined) return () => Promise.reject(new Error("the signing key could not be read"));
  const key = readKey(signingKey, path);
  const usable = algorithmsOf(key);
  if (usable.length === 0)
    throw PolicyError.at(
      [...path, "signingKey"],
      `keys of type ${key.asymmetricKeyType} cannot sign here; use RSA or EC`,
    );
  if (!usable.includes(alg))
    throw PolicyError.at(
      [...path, "alg"],
      `is ${alg}, but the key can be used with ${usable.join(", ")} only; set alg`,
    );
  return (claims, header = {}) =>
    new SignJWT(claims).setProtectedHeader({ ...header, alg, typ: "JWT", ...(kid !== undefined && { kid }) }).sign(key);
}

function readKey(pem: string, path: ConfigPath): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    throw PolicyError.at([...path, "signingKey"], "is not a private key; write one in PEM without a passphrase");
  }
}

function algorithmsOf({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject): string[] {
  if (type === "rsa") return ["RS256", "RS384", "RS512", "PS256"];
  const algorithm = type === "ec" ? BY_CURVE[asymmetricKeyDetails?.namedCurve ?? ""] : undefined;
  return algorithm === undefined ? [] : [algorithm];
}

/**
 * Returns signed tokens. A token serves many requests, because signatures are expensive, and is replaced after half of its
 * lifetime, so the backend never gets one that is about to expire. Throws like `tokenSigner`.
 */
export function signedTokens(config: JwtSigning, path: ConfigPath): () => Promise<string> {
  const { claims, ttl } = config;
  const sign = tokenSigner(config, path);
  let current: Promise<string> | undefined;
  let until = 0;
  return () => {
    const now = Date.now();
    if (current !== undefined && now < until) return current;
    until = now + ttl / 2;
    const iat = Math.floor(now / 1000);
    const signed = sign({ ...claims, iat, exp: iat + Math.floor(ttl / 1000) });
    signed.catch(() => {
      current = undefined;
    });
    current = signed;
    return signed;
  };
}

import type { ConfigPath } from "../policy-error.ts";
import type { JwtSigning } from "./basic-schema.ts";
import { tokenSigner } from "./signing.ts";

/** Gives signed tokens; each serves many requests and is replaced after half of its time. Throws as `tokenSigner`. */
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

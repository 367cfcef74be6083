import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";
import { BoundedCache } from "../../base/bounded-cache.ts";
import { CelSecret } from "../../cel/index.ts";
import { type ConfigPath, within } from "../contract/policy-error.ts";
import { parseKeys, type VerificationKey } from "./keys.ts";
import type { JwtProvider } from "./schema.ts";

/** Seconds of clock skew that `exp` and `nbf` tolerate; the default of the reference. */
const LEEWAY = 60;
/** Verified tokens that are remembered; each takes one or two KiB with its claims. */
const MAX_KNOWN = 4096;
/** Characters of a token's own text, such as an unknown `kid`, that go into an error. */
const MAX_SHOWN = 64;

export interface ProviderAt extends JwtProvider {
  /** Its place in the policy. */
  readonly path: ConfigPath;
}

interface Candidate extends VerificationKey {
  readonly issuer: string;
  readonly options: JWTVerifyOptions;
}

interface VerifiedToken {
  readonly claims: JWTPayload;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** What is wrong with a token whose key is known. Values and names from it are shortened and printable. */
export type TokenFault =
  /** `at`: Unix seconds. */
  | { readonly code: "expired" | "notYetValid"; readonly at: number }
  | { readonly code: "missingClaim"; readonly claim: string }
  /** `value`: as JSON. */
  | { readonly code: "wrongClaim"; readonly claim: string; readonly value: string }
  /** `claim` is a time. */
  | { readonly code: "notNumber"; readonly claim: string }
  /** `algorithm`: as JSON, undefined if the header has none. */
  | { readonly code: "algorithm"; readonly algorithm: string | undefined }
  /** `extension`: the header requires one that is not understood (RFC 7515 4.1.11). */
  | { readonly code: "signature" | "extension" | "malformed" | "assumed" | "unverifiable" };

/** Why a token is rejected. */
export type TokenProblem =
  | { readonly code: "noKeyId" }
  | { readonly code: "unknownKey"; readonly kid: string }
  | { readonly code: "keysNotFetched"; readonly issuer: string }
  | { readonly code: "invalidToken"; readonly fault: TokenFault };

/** A rejected token. */
export class TokenRejection extends Error {
  readonly problem: TokenProblem;
  /** The URL of the key set that may contain the token's key by now. */
  readonly wanted: string | undefined;

  constructor(problem: TokenProblem, cause?: unknown, wanted?: string) {
    super(problem.code, { cause });
    this.problem = problem;
    this.wanted = wanted;
  }
}

/**
 * Verifies the tokens of some issuers. Each token is verified once and remembered until it expires, because a signature costs more
 * than everything else of a request. The memory belongs to the configuration: keys that a reload removes no longer verify anything.
 */
export class TokenVerifier {
  readonly #keys = new Map<string, Candidate[]>();
  readonly #known = new BoundedCache<VerifiedToken>(MAX_KNOWN);
  readonly #providers: readonly ProviderAt[];

  /** Throws a PolicyError for a key set that cannot be used. */
  constructor(providers: readonly ProviderAt[]) {
    this.#providers = providers;
    for (const provider of providers)
      for (const key of keysOf(provider)) {
        const candidates = this.#keys.get(key.kid) ?? [];
        candidates.push({ ...key, issuer: provider.issuer, options: optionsOf(provider, key) });
        this.#keys.set(key.kid, candidates);
      }
  }

  /** Claims of a token that was verified before and has not expired. */
  known(token: string): JWTPayload | undefined {
    const known = this.#known.get(token);
    if (known === undefined) return undefined;
    if (Date.now() < known.until) return known.claims;
    this.#known.delete(token);
    return undefined;
  }

  /** Verifies signature, issuer, audience and times, and returns the claims. Rejects with TokenRejection. */
  async verify(token: string): Promise<JWTPayload> {
    const { key, options } = this.#candidate(token);
    let claims: JWTPayload;
    try {
      claims = (await jwtVerify(token, key, options)).payload;
    } catch (error) {
      throw rejection(error, token);
    }
    const until = claims.exp === undefined ? Number.POSITIVE_INFINITY : (claims.exp + LEEWAY) * 1000;
    // Not enumerable: it hides a claim of that name, and neither traces nor logs that show the claims show the token.
    Object.defineProperty(claims, "rawToken", { value: new CelSecret(token), enumerable: false });
    this.#known.set(token, { claims, until });
    return claims;
  }

  /** `issuer`: the unverified claim of the token; a false one only triggers a fetch of another key set, which is rate-limited. */
  #unknownKey(kid: string, issuer: string | undefined): TokenRejection {
    const provider = this.#providers.find((each) => each.issuer === issuer);
    if (provider !== undefined && provider.jwks === undefined)
      return new TokenRejection({ code: "keysNotFetched", issuer: provider.issuer });
    const problem = { code: "unknownKey", kid: printable(kid, MAX_SHOWN) } as const;
    return new TokenRejection(problem, undefined, provider?.jwksUrl);
  }

  /**
   * The key that the token names by `kid`. If several issuers use the same id, unverified `iss` and `alg` choose among them; the
   * signature is then verified with the chosen key, so a false claim gains nothing.
   */
  #candidate(token: string): Candidate {
    try {
      const { kid, alg } = decodeProtectedHeader(token);
      if (typeof kid !== "string") throw new TokenRejection({ code: "noKeyId" });
      const candidates = this.#keys.get(kid) ?? [];
      const [first, ...others] = candidates;
      if (first === undefined) throw this.#unknownKey(kid, decodeJwt(token).iss);
      if (others.length === 0) return first;
      const { iss } = decodeJwt(token);
      return candidates.find((each) => each.issuer === iss && each.algorithms.includes(alg ?? "")) ?? first;
    } catch (error) {
      // The library has this type for a header that it cannot decode.
      if (error instanceof TypeError) throw invalidToken({ code: "malformed" });
      throw rejection(error, token);
    }
  }
}

function keysOf({ path, jwks }: ProviderAt): VerificationKey[] {
  return jwks === undefined ? [] : within([...path, "jwks"], () => parseKeys(jwks));
}

function optionsOf(
  { issuer, audiences = [], jwtValidationOptions }: JwtProvider,
  key: VerificationKey,
): JWTVerifyOptions {
  return {
    algorithms: [...key.algorithms],
    issuer,
    ...(audiences.length > 0 && { audience: [...audiences] }),
    clockTolerance: LEEWAY,
    requiredClaims: [...(jwtValidationOptions?.requiredClaims ?? ["exp"])],
  };
}

function rejection(error: unknown, token: string): TokenRejection {
  if (error instanceof TokenRejection) return error;
  const fault = faultOf(error, token);
  return invalidToken(fault, fault.code === "unverifiable" ? error : undefined);
}

function invalidToken(fault: TokenFault, cause?: unknown): TokenRejection {
  return new TokenRejection({ code: "invalidToken", fault }, cause);
}

/** By the types of the library, whose messages are not for users, and some of which quote the token. */
function faultOf(error: unknown, token: string): TokenFault {
  if (error instanceof errors.JWSSignatureVerificationFailed) return { code: "signature" };
  if (error instanceof errors.JOSEAlgNotAllowed) return { code: "algorithm", algorithm: shownAlgorithm(token) };
  // The algorithm is one of the key's, so it is known.
  if (error instanceof errors.JOSENotSupported) return { code: "extension" };
  if (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason, payload } = error;
    const value = payload[claim];
    if (reason === "missing") return { code: "missingClaim", claim };
    if (reason === "invalid") return { code: "notNumber", claim };
    if (typeof value === "number" && claim === "exp") return { code: "expired", at: value };
    if (typeof value === "number" && claim === "nbf") return { code: "notYetValid", at: value };
    return { code: "wrongClaim", claim, value: printable(JSON.stringify(value), MAX_SHOWN) };
  }
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid) return { code: "malformed" };
  return { code: "unverifiable" };
}

/** Of a token whose header has been decoded. */
function shownAlgorithm(token: string): string | undefined {
  const { alg } = decodeProtectedHeader(token);
  return alg === undefined ? undefined : printable(JSON.stringify(alg), MAX_SHOWN);
}

/** Printable and short: the client wrote it. */
function printable(text: string, length: number): string {
  return text.slice(0, length).replace(/[^\x20-\x7e]/g, "?");
}

/**
 * `jwtAuth` (docs/policies/jwt-auth.md): authenticates clients by signed tokens (JWT, RFC 7519, as bearer tokens of RFC 6750).
 * In: issuers with their key sets. Out: claims as `jwt` for expressions and a request without the token, or 401 with a challenge.
 * Runs in the gateway and route phases. Key sets behind URLs are fetched when the configuration loads; a changed set is a reload.
 * While a set is missing, requests with tokens of its issuer get 503; a token with an unknown key triggers a new fetch.
 */
import { GatewayError } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { CredentialPlaces } from "../contract/credential-names.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import type { PolicyContext, PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { challengeFor } from "../shared/credentials/challenge.ts";
import { credentialFinder } from "../shared/credentials/find.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import { kidsOf } from "./keys.ts";
import type { JwtAuth } from "./schema.ts";
import { KeysMissing, type ProviderAt, TokenRejection, TokenVerifier } from "./verifier.ts";

const NO_TOKEN = "no bearer token found";

export const jwtAuth = definePolicy({
  kind: "jwtAuth",
  phases: ["gateway", "route"],
  traceStage: "jwt auth",
  gatewayTraceStage: "jwt",
  traceKey: "jwt",
  shadow: true,
  prepare,
  redact,
});

/**
 * Parses the key sets and returns the hook. It is synchronous for tokens that have been verified before: only a new token costs a
 * signature and a turn of the event loop. Throws PolicyError or CelError for key sets and expressions that are invalid.
 */
function prepare(config: JwtAuth, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const { mode, location } = config;
  const verifier = new TokenVerifier(providersOf(config));
  const places = new CredentialPlaces();
  const finder = credentialFinder(location, places, cel);
  const challenge = challengeFor(location, "Bearer");

  const accept = (context: PolicyContext, token: string, claims: unknown): undefined => {
    context.trace?.applied("jwt", { valid: true });
    context.requestMetadata.jwt = claims;
    // For `backendAuth.passthrough` and token exchange, which forward or exchange what is removed here.
    context.requestMetadata.token = token;
    context.requestMetadata.tokenFrom = location;
    finder.remove(context);
  };
  const reject = ({ trace }: PolicyContext, error: unknown, wantDocument: PolicyDeps["wantDocument"]): undefined => {
    if (!(error instanceof TokenRejection)) throw error;
    const outcome = { valid: false, reason: error.message };
    if (error.wanted !== undefined) wantDocument?.(error.wanted);
    if (mode === "permissive") {
      trace?.failed("jwt", outcome);
      return undefined;
    }
    trace?.decided("jwt", false, outcome);
    if (error instanceof KeysMissing) throw new GatewayError("TG_DOCUMENT_MISSING", undefined, error);
    throw new GatewayError("TG_JWT", error.message, error.cause, challenge.invalid);
  };

  const onRequest = ({ wantDocument }: PolicyDeps) =>
    afterRequestBody(finder.expressions, (context) => {
      const token = finder.find(context);
      if (token === undefined || token === "") {
        if (mode === "strict") {
          context.trace?.decided("jwt", false, { valid: false, reason: NO_TOKEN });
          throw new GatewayError("TG_JWT_MISSING", undefined, undefined, challenge.missing);
        }
        context.trace?.skipped("jwt", NO_TOKEN, "warn");
        return undefined;
      }
      const known = verifier.known(token);
      if (known !== undefined) return accept(context, token, known);
      return verifier.verify(token).then(
        (claims) => accept(context, token, claims),
        (error: unknown) => reject(context, error, wantDocument),
      );
    });
  return (deps) => {
    places.addTo(deps.credentials);
    return { onRequest: onRequest(deps) };
  };
}

/** Key ids instead of keys: public keys are not secret, but long, and the id is what a token names. */
function redact(config: JwtAuth): unknown {
  const providers = providersOf(config).map(({ path: _path, jwks, jwksUrl: _url, ...provider }) => ({
    ...provider,
    keys: jwks === undefined ? [] : kidsOf(jwks),
  }));
  return { mode: config.mode, location: config.location, providers };
}

/** One list for both ways to configure: a single issuer, or `providers`. */
function providersOf({
  providers,
  issuer = "",
  audiences,
  jwks,
  jwksUrl,
  jwtValidationOptions,
}: JwtAuth): ProviderAt[] {
  if (providers !== undefined) return providers.map((provider, i) => ({ ...provider, path: ["providers", i] }));
  return [
    {
      issuer,
      ...(audiences !== undefined && { audiences }),
      jwks,
      jwksUrl,
      ...(jwtValidationOptions !== undefined && { jwtValidationOptions }),
      path: [],
    },
  ];
}

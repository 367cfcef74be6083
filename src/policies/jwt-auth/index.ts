/**
 * `jwtAuth` (docs/policies/jwt-auth.md): authenticates clients by signed tokens (JWT, RFC 7519, as bearer tokens of RFC 6750).
 * In: issuers with their key sets. Out: claims as `jwt` for expressions and a request without the token, or 401 with a challenge.
 * Runs in the gateway and route phases. Key sets behind URLs are fetched when the configuration loads; a changed set is a reload.
 * While a set is missing, requests with tokens of its issuer get 503; a token with an unknown key triggers a new fetch.
 */
import type { CelEnvironment } from "../../cel/index.ts";
import { CredentialPlaces } from "../contract/credential-names.ts";
import { applied, Decisions, failed, rejected, type Told, unable } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { MissingCredential } from "../contract/missing-credential.ts";
import type { Admission, Authenticator, PolicyContext, PolicyTrace, Verified } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { authenticatingHooks } from "../shared/credentials/authenticate.ts";
import { challengeFor } from "../shared/credentials/challenge.ts";
import { credentialFinder } from "../shared/credentials/find.ts";
import { placeText } from "../shared/credentials/places.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import { kidsOf } from "./keys.ts";
import type { JwtAuth } from "./schema.ts";
import { type ProviderAt, type TokenFault, type TokenProblem, TokenRejection, TokenVerifier } from "./verifier.ts";

type JwtDecision =
  | { readonly code: "valid" }
  | { readonly code: "missing"; readonly mode: JwtAuth["mode"]; readonly place: string }
  | (TokenProblem & { readonly mode: JwtAuth["mode"] });

const refused = (reason: string, mode: JwtAuth["mode"]): Told =>
  mode === "permissive"
    ? failed(`${reason}, which mode permissive allows`, { valid: false, reason })
    : rejected(reason, { valid: false, reason });

function faultText(fault: TokenFault): string {
  switch (fault.code) {
    case "expired":
      return `it expired at ${timeOf(fault.at)}`;
    case "notYetValid":
      return `it is not valid before ${timeOf(fault.at)}`;
    case "missingClaim":
      return `it has no claim ${fault.claim}`;
    case "wrongClaim":
      return `its claim ${fault.claim} is ${fault.value}, which is not accepted`;
    case "signature":
      return "its signature does not match the key";
    case "assumed":
      return "that is assumed";
    case "unverifiable":
      return "it cannot be verified";
    case "notNumber":
      return `its claim ${fault.claim} is not a number`;
    case "algorithm":
      return fault.algorithm === undefined
        ? "its header names no algorithm"
        : `its algorithm ${fault.algorithm} is not one of the key's`;
    case "extension":
      return "its header requires an extension (crit) that is not supported";
    case "malformed":
      return "it is not a signed token in compact form: three parts in base64url, the first two of them JSON objects";
  }
}

/** Clients can send any number. */
function timeOf(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString();
}

const decisions = new Decisions<JwtDecision>("jwt", {
  valid: () => applied("the token is valid", { valid: true }),
  missing: ({ mode, place }) =>
    mode === "strict"
      ? rejected(`no token in ${place}`, { valid: false, reason: "no bearer token found" })
      : unable(`no token in ${place}, which mode ${mode} allows`),
  noKeyId: ({ mode }) => refused("the token header does not specify a `kid`", mode),
  unknownKey: ({ kid, mode }) => refused(`the token uses the unknown key ${JSON.stringify(kid)}`, mode),
  keysNotFetched: ({ issuer, mode }) =>
    refused(`the key set of the issuer ${JSON.stringify(issuer)} has not been fetched yet`, mode),
  invalidToken: ({ fault, mode }) => refused(`the token is invalid or malformed: ${faultText(fault)}`, mode),
});

export const jwtAuth = definePolicy({
  decisions,
  kind: "jwtAuth",
  phases: ["gateway", "route"],
  gatewayTraceStage: "jwt",
  traceKey: "jwt",
  prepare(config: JwtAuth, cel) {
    const bind = prepareJwtAuth(config, cel);
    return (deps) => authenticatingHooks(bind(deps));
  },
  redact,
});

/**
 * Parses the key sets and returns the hook. It is synchronous for tokens that have been verified before: only a new token costs a
 * signature and a turn of the event loop. Throws PolicyError or CelError for key sets and expressions that are invalid.
 */
export function prepareJwtAuth(config: JwtAuth, cel: CelEnvironment): (deps: PolicyDeps) => Authenticator {
  const { mode, location } = config;
  const verifier = new TokenVerifier(providersOf(config));
  const places = new CredentialPlaces();
  const finder = credentialFinder(location, places, cel);
  const challenge = challengeFor(location, "Bearer");
  const place = placeText(location);

  const accept = (trace: PolicyTrace | undefined, token: string, claims: unknown): Admission => {
    trace?.report(decisions, { code: "valid" });
    return (context) => {
      context.requestMetadata.jwt = claims;
      // For `backendAuth.passthrough` and token exchange, which forward or exchange what is removed here.
      context.requestMetadata.token = token;
      context.requestMetadata.tokenFrom = location;
      finder.remove(context);
    };
  };
  const reject = (
    trace: PolicyTrace | undefined,
    error: unknown,
    wantDocument: PolicyDeps["wantDocument"],
  ): undefined => {
    if (!(error instanceof TokenRejection)) throw error;
    const { problem, wanted, cause } = error;
    const decision = { ...problem, mode };
    if (wanted !== undefined) wantDocument?.(wanted);
    if (mode !== "permissive")
      throw problem.code === "keysNotFetched"
        ? decisions.reject(trace, decision, "TG_DOCUMENT_MISSING")
        : decisions.reject(trace, decision, "TG_JWT", { cause, ...challenge.invalid });
    trace?.report(decisions, decision);
    return undefined;
  };

  const verifierOf = ({ wantDocument, assumedCredential }: PolicyDeps) =>
    afterRequestBody(finder.expressions, (context: PolicyContext, trace: PolicyTrace | undefined): Verified => {
      const token = finder.find(context);
      const assumed = assumedCredential?.("jwt", token, context.request.headers);
      if (assumed === "invalid")
        return reject(trace, new TokenRejection({ code: "invalidToken", fault: { code: "assumed" } }), undefined);
      if (assumed !== undefined) return accept(trace, token ?? "", assumed);
      if (token === undefined || token === "") {
        const decision = { code: "missing", mode, place } as const;
        if (mode === "strict")
          return new MissingCredential(() => decisions.reject(trace, decision, "TG_JWT_MISSING", challenge.missing));
        trace?.report(decisions, decision);
        return undefined;
      }
      const known = verifier.known(token);
      if (known !== undefined) return accept(trace, token, known);
      return verifier.verify(token).then(
        (claims) => accept(trace, token, claims),
        (error: unknown) => reject(trace, error, wantDocument),
      );
    });
  return (deps) => {
    places.addTo(deps.credentials);
    return { verify: verifierOf(deps), discard: finder.discard };
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
function providersOf({ mode: _mode, location: _location, providers, issuer = "", ...single }: JwtAuth): ProviderAt[] {
  if (providers !== undefined) return providers.map((provider, i) => ({ ...provider, path: ["providers", i] }));
  return [{ issuer, ...single, path: [] }];
}

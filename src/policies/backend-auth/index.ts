/**
 * `backendAuth` (docs/policies/backend-auth.md): adds the gateway's own credentials, or the client's token, to requests for a
 * backend. In: a fixed credential, a signing key, or token endpoints. Out: the request with the credential, redacted in traces,
 * or TG_BACKEND_AUTH. Runs in the backend phase for each attempt, and for the gateway's own calls (`src/policies/calls/`).
 */
import { GatewayError } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { CredentialPlaces } from "../contract/credential-names.ts";
import { applied, Decisions } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { type ConfigPath, PolicyError } from "../contract/policy-error.ts";
import type { OutgoingContext, RequestOutcome } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { BackendAuth } from "../schema/backend-auth.ts";
import type { CredentialTarget } from "../schema/location.ts";
import { placeText } from "../shared/credentials/places.ts";
import { credentialPutter } from "../shared/credentials/put.ts";
import { sendableText } from "../shared/expressions.ts";
import { redact } from "./redact.ts";
import { signedTokens } from "./signing.ts";
import { crossAppAccess, type Exchange, tokenExchange } from "./token-exchange.ts";

const decisions = new Decisions<{ readonly code: "added"; readonly location: CredentialTarget }>("backend_auth", {
  added: ({ location }) =>
    applied(`adds the credential in ${placeText(location)}`, { location: Object.keys(location)[0] }),
});

export const backendAuth = definePolicy({
  decisions,
  kind: "backendAuth",
  phases: ["backend"],
  traceStage: "auth",
  calls: "apply",
  prepare: prepareCredentials,
  redact,
});

const BEARER: CredentialTarget = { header: { name: "authorization", prefix: "Bearer " } };

type Deps = Pick<PolicyDeps, "callouts" | "credentials">;
type Put = (context: OutgoingContext, credential: string) => undefined;
type Step = (context: OutgoingContext) => RequestOutcome;

/** Adds credentials to a request, a client's or the gateway's own. Returns a promise only where a token has to be obtained. */
interface CredentialAdder {
  readonly onRequest: Step;
}

/** Reads keys and compiles expressions. Throws PolicyError or CelError for those that are invalid. */
export function prepareCredentials(config: BackendAuth, cel: CelEnvironment): (deps: Deps) => CredentialAdder {
  const places = new CredentialPlaces();
  const main = mainStep(config, places, cel);
  const fixed = config.credentials.map(({ key, location }, i) =>
    fixedStep(key, location, ["credentials", i, "key"], places),
  );
  return (deps) => {
    places.addTo(deps.credentials);
    const step = main?.(deps);
    return {
      onRequest(context) {
        for (const each of fixed) each(context);
        const outcome = step?.(context);
        return outcome instanceof Promise ? outcome.catch(fail) : outcome;
      },
    };
  };
}

/** The step for the one way that is configured; undefined if there are only `credentials`. */
function mainStep(
  config: BackendAuth,
  places: CredentialPlaces,
  cel: CelEnvironment,
): ((deps: Deps) => Step) | undefined {
  const { passthrough, key, jwtSign, oauthTokenExchange, crossAppAccess: access } = config;
  if (key !== undefined) {
    const step = fixedStep(key.value, key.location, ["key", "value"], places);
    return () => step;
  }
  if (passthrough !== undefined) {
    const put = putter(passthrough.location, places);
    return () => (context) => {
      const { token } = context.requestMetadata;
      if (token !== undefined) put(context, token);
      return undefined;
    };
  }
  if (jwtSign !== undefined) {
    const put = putter(jwtSign.location, places);
    const token = signedTokens(jwtSign, ["jwtSign"]);
    return () => async (context) => put(context, await token());
  }
  if (oauthTokenExchange !== undefined) {
    const exchange = tokenExchange(oauthTokenExchange, ["oauthTokenExchange"], places, cel);
    const put = putter(oauthTokenExchange.authorizationLocation, places);
    return (deps) => exchangeStep(exchange(deps), put);
  }
  if (access !== undefined) {
    const exchange = crossAppAccess(access, ["crossAppAccess"], places, cel);
    const put = putter(BEARER, places);
    return (deps) => exchangeStep(exchange(deps), put);
  }
  return undefined;
}

function exchangeStep(exchange: Exchange, put: Put): Step {
  return async (context) => put(context, await exchange(context));
}

/** A fixed credential. Files usually end with a line break, which is not part of it; other control characters would be header injection. */
function fixedStep(
  credential: string | undefined,
  location: CredentialTarget,
  path: ConfigPath,
  places: CredentialPlaces,
): Step {
  const value = (credential ?? "").replace(/\r?\n$/, "");
  try {
    sendableText(value);
  } catch {
    throw PolicyError.at(path, "has a control character such as a line break; remove it");
  }
  const put = putter(location, places);
  return (context) => put(context, value);
}

/** Sets a credential and says in the trace where; the credential itself never gets into a trace. */
function putter(location: CredentialTarget, places: CredentialPlaces): Put {
  const put = credentialPutter(location, places);
  return (context, credential) => {
    try {
      put(context, credential);
    } catch (error) {
      fail(error);
    }
    context.trace?.report(decisions, { code: "added", location });
  };
}

/** A failure without an error code becomes TG_BACKEND_AUTH: requests never go out without their credential. */
function fail(error: unknown): never {
  if (error instanceof GatewayError) throw error;
  throw new GatewayError("TG_BACKEND_AUTH", error instanceof Error ? error.message : "unknown failure", error);
}

import { GatewayError } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import type { PolicyDeps } from "../deps.ts";
import { definePolicy } from "../policy.ts";
import { type ConfigPath, PolicyError } from "../policy-error.ts";
import type { CredentialTarget } from "../shared/credentials/location-schema.ts";
import { CredentialPlaces } from "../shared/credentials/names.ts";
import { credentialPutter } from "../shared/credentials/put.ts";
import { sendableText } from "../shared/expressions.ts";
import type { OutgoingContext, RequestOutcome } from "../types.ts";
import { redact } from "./redact.ts";
import type { BackendAuth } from "./schema.ts";
import { signedTokens } from "./signing.ts";
import { crossAppAccess, type Exchange, tokenExchange } from "./token-exchange.ts";

export const backendAuth = definePolicy({
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

/** Adds credentials to a request of a client, or of the gateway itself. */
export interface CredentialAdder {
  readonly onRequest: Step;
}

/** Adds what the backend asks for (reference 3.22). Throws for keys and credentials that cannot be used. */
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

/** Files end with a line break that belongs to no credential. */
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

function putter(location: CredentialTarget, places: CredentialPlaces): Put {
  const put = credentialPutter(location, places);
  const place = Object.keys(location)[0];
  return (context, credential) => {
    try {
      put(context, credential);
    } catch (error) {
      fail(error);
    }
    context.trace?.applied("backend_auth", { location: place });
  };
}

function fail(error: unknown): never {
  if (error instanceof GatewayError) throw error;
  throw new GatewayError("TG_BACKEND_AUTH", error instanceof Error ? error.message : "unknown failure", error);
}

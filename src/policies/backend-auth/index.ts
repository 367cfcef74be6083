import { GatewayError } from "../../base/errors.ts";
import type { PolicyDeps } from "../deps.ts";
import type { BackendAuth, CredentialTarget } from "../policy-set.ts";
import { sendableText } from "../shared/cel-output.ts";
import { credentialPutter } from "../shared/credentials/put.ts";
import type { OutgoingContext, OutgoingPolicy, RequestOutcome } from "../types.ts";
import { signedTokens } from "./jwt-sign.ts";
import { crossAppAccess, type Exchange, tokenExchange } from "./token-exchange.ts";

const KIND = "backendAuth";
const BEARER: CredentialTarget = { header: { name: "authorization", prefix: "Bearer " } };

type Deps = Pick<PolicyDeps, "callouts" | "credentials" | "cel" | "hidden">;
type Put = (context: OutgoingContext, credential: string) => undefined;
type Step = (context: OutgoingContext) => RequestOutcome;

/** Adds what the backend asks for (reference 3.22). Throws for keys and credentials that cannot be used. */
export function create(config: BackendAuth, deps: Deps): OutgoingPolicy {
  const main = mainStep(config, deps);
  const fixed = config.credentials.map(({ key, location }, i) =>
    fixedStep(key, location, `credentials.${i}.key`, deps),
  );
  return {
    kind: KIND,
    onRequest(context) {
      for (const step of fixed) step(context);
      const outcome = main?.(context);
      return outcome instanceof Promise ? outcome.catch(fail) : outcome;
    },
  };
}

function mainStep(config: BackendAuth, deps: Deps): Step | undefined {
  const { passthrough, key, jwtSign, oauthTokenExchange, crossAppAccess: access } = config;
  if (key !== undefined) return fixedStep(key.value, key.location, "key.value", deps);
  if (passthrough !== undefined) {
    const put = putter(passthrough.location, deps);
    return (context) => {
      const { token } = context.requestMetadata;
      if (token !== undefined) put(context, token);
      return undefined;
    };
  }
  if (jwtSign !== undefined) {
    const put = putter(jwtSign.location, deps);
    const token = signedTokens(jwtSign, `${KIND}.jwtSign`);
    return async (context) => put(context, await token());
  }
  if (oauthTokenExchange !== undefined)
    return exchangeStep(
      tokenExchange(oauthTokenExchange, `${KIND}.oauthTokenExchange`, deps),
      putter(oauthTokenExchange.authorizationLocation, deps),
    );
  if (access !== undefined)
    return exchangeStep(crossAppAccess(access, `${KIND}.crossAppAccess`, deps), putter(BEARER, deps));
  return undefined;
}

function exchangeStep(exchange: Exchange, put: Put): Step {
  return async (context) => put(context, await exchange(context));
}

/** Files end with a line break that belongs to no credential. */
function fixedStep(credential: string | undefined, location: CredentialTarget, field: string, deps: Deps): Step {
  const value = (credential ?? "").replace(/\r?\n$/, "");
  try {
    sendableText(value);
  } catch {
    throw new Error(`${KIND}.${field}: has a control character such as a line break; remove it`);
  }
  const put = putter(location, deps);
  return (context) => put(context, value);
}

function putter(location: CredentialTarget, { credentials }: Deps): Put {
  const put = credentialPutter(location, credentials);
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

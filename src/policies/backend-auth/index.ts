import { GatewayError } from "../../base/errors.ts";
import type { BackendAuth, CredentialTarget } from "../../ir/policies.ts";
import { REDACTED } from "../../trace/redaction.ts";
import { observerOf } from "../calls/call-for.ts";
import { sendableText } from "../shared/cel-output.ts";
import { credentialPutter } from "../shared/credentials/put.ts";
import type { OutgoingContext, OutgoingPolicy, RequestOutcome } from "../types.ts";
import { tokenSigner } from "./jwt-sign.ts";
import { TokenExchanger } from "./token-exchange.ts";

const KIND = "backendAuth";

type Step = (context: OutgoingContext) => RequestOutcome;

/** Adds what the backend asks for (reference 3.22). Throws for keys and credentials that cannot be used. */
export function create(config: BackendAuth): OutgoingPolicy {
  const main = mainStep(config);
  const fixed = config.credentials.map(({ key, location }, i) => fixedStep(key, location, `credentials.${i}.key`));
  return {
    kind: KIND,
    shown: shown(config),
    onRequest(context) {
      for (const step of fixed) step(context);
      const outcome = main?.(context);
      return outcome instanceof Promise ? outcome.catch(fail) : outcome;
    },
  };
}

/** The configuration without secrets. */
export function shown(config: BackendAuth): unknown {
  const { key, jwtSign, oauthTokenExchange: exchange, credentials } = config;
  return {
    ...config,
    ...(key !== undefined && { key: { ...key, value: REDACTED } }),
    ...(jwtSign !== undefined && { jwtSign: { ...jwtSign, key: REDACTED } }),
    ...(exchange?.clientSecret !== undefined && { oauthTokenExchange: { ...exchange, clientSecret: REDACTED } }),
    credentials: credentials.map(({ location }) => ({ location, key: REDACTED })),
  };
}

function mainStep({ passthrough, key, jwtSign, oauthTokenExchange }: BackendAuth): Step | undefined {
  if (key !== undefined) return fixedStep(key.value, key.location, "key.value");
  if (passthrough !== undefined) {
    const put = putter(passthrough.location);
    return (context) => {
      const { token } = context.findings;
      if (token !== undefined) put(context, token);
      return undefined;
    };
  }
  if (jwtSign !== undefined) {
    const put = putter(jwtSign.location);
    const token = tokenSigner(jwtSign, `${KIND}.jwtSign`);
    return async (context) => put(context, await token());
  }
  if (oauthTokenExchange === undefined) return undefined;
  const put = putter(oauthTokenExchange.location);
  const exchanger = new TokenExchanger(oauthTokenExchange);
  return async (context) => {
    const { token } = context.findings;
    if (token === undefined) throw new Error("the request has no verified token to exchange");
    put(context, await exchanger.exchange(token, observerOf(context, "http")));
    return undefined;
  };
}

/** Files end with a line break that belongs to no credential. */
function fixedStep(credential: string | undefined, location: CredentialTarget, field: string): Step {
  const value = (credential ?? "").replace(/\r?\n$/, "");
  try {
    sendableText(value);
  } catch {
    throw new Error(`${KIND}.${field}: has a control character such as a line break; remove it`);
  }
  const put = putter(location);
  return (context) => put(context, value);
}

function putter(location: CredentialTarget): (context: OutgoingContext, credential: string) => undefined {
  const put = credentialPutter(location);
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

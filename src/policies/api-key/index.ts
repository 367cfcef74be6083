import { hash as digest } from "node:crypto";
import { GatewayError } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { CelSecret } from "../../cel/index.ts";
import { REDACTED } from "../../trace/redaction.ts";
import type { PolicyDeps } from "../deps.ts";
import { definePolicy } from "../policy.ts";
import { PolicyError } from "../policy-error.ts";
import { challengeFor } from "../shared/credentials/challenge.ts";
import { credentialFinder } from "../shared/credentials/find.ts";
import { CredentialPlaces } from "../shared/credentials/names.ts";
import { secretDigest } from "../shared/credentials/secret-digest.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import type { PolicyHooks } from "../types.ts";
import type { ApiKey, ApiKeyAuth } from "./schema.ts";

export const apiKey = definePolicy({
  kind: "apiKey",
  phases: ["gateway", "route"],
  traceStage: "api key",
  prepare,
  redact,
});

/**
 * Lets in who has one of the keys (reference 3.7). Keys are known by their SHA-256 only, and looked up by a keyed digest of
 * that: how long a look-up takes tells nothing about them. Throws for keys that are there twice.
 */
function prepare(config: ApiKeyAuth, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const { mode, location } = config;
  const keys = new Map<string, object>();
  for (const [i, { hash, metadata }] of config.keys.entries()) {
    const known = keyed(hash);
    if (keys.has(known)) throw PolicyError.at(["keys", i], "the same key is listed above; remove one of them");
    keys.set(known, { ...metadata });
  }
  const places = new CredentialPlaces();
  const finder = credentialFinder(location, places, cel);
  // No registered scheme fits keys in headers of their own, in cookies or in queries.
  const challenge = challengeFor(location, "ApiKey");
  const onRequest = afterRequestBody(finder.expressions, (context) => {
    const { requestMetadata, trace } = context;
    const key = finder.find(context);
    if (key === undefined) {
      if (mode === "strict") {
        trace?.decided("api_key", false, { valid: false, reason: "no API key found" });
        throw new GatewayError("TG_API_KEY_MISSING", undefined, undefined, challenge.missing);
      }
      trace?.skipped("api_key", "no API key found", "warn");
      return undefined;
    }
    const found = keys.get(keyed(digest("sha256", Buffer.from(key, "latin1"), "hex")));
    const outcome = { valid: found !== undefined };
    if (found === undefined && mode === "permissive") trace?.failed("api_key", outcome);
    else trace?.decided("api_key", outcome.valid, outcome);
    if (found !== undefined) {
      requestMetadata.apiKey = { ...found, key: new CelSecret(Buffer.from(key, "latin1").toString()) };
      finder.remove(context);
    } else if (mode !== "permissive") throw new GatewayError("TG_API_KEY", undefined, undefined, challenge.invalid);
    return undefined;
  });
  return ({ credentials }) => {
    places.addTo(credentials);
    return { onRequest };
  };
}

/** The configuration without what stands for a key, and without metadata whose names, such as `hidden` ones, are those of secrets. */
function redact({ keys, mode, location }: ApiKeyAuth, hidden: ReadonlySet<string>): unknown {
  const shownKeys = keys.map(({ metadata }: ApiKey) => ({
    keyHash: REDACTED,
    ...(metadata !== undefined && { metadata: shownMetadata(metadata, hidden) }),
  }));
  return { keys: shownKeys, mode, location };
}

function shownMetadata(value: unknown, hidden: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((each) => shownMetadata(each, hidden));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([k, v]) => [k, hidden.has(k) ? REDACTED : shownMetadata(v, hidden)]));
}

/** `hash`: SHA-256 of a key, in hexadecimal. */
function keyed(hash: string): string {
  return secretDigest(hash).toString("latin1");
}

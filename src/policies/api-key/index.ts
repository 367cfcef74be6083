/**
 * `apiKey` (docs/policies/api-key.md): authenticates clients by a shared secret in a header, query parameter, cookie or
 * expression. In: the accepted keys as SHA-256 digests with their metadata. Out: `apiKey` for expressions and a request without
 * the key, or 401 with a challenge. Runs in the gateway and route phases.
 */
import { hash as digest } from "node:crypto";
import { REDACTED } from "../../base/redaction.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { CelSecret } from "../../cel/index.ts";
import { CredentialPlaces } from "../contract/credential-names.ts";
import { applied, Decisions, failed, rejected, unable } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { MissingCredential } from "../contract/missing-credential.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { Admission, Authenticator, PolicyContext, PolicyTrace, Verified } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { authenticatingHooks } from "../shared/credentials/authenticate.ts";
import { challengeFor } from "../shared/credentials/challenge.ts";
import { credentialFinder } from "../shared/credentials/find.ts";
import { placeText } from "../shared/credentials/places.ts";
import { secretDigest } from "../shared/credentials/secret-digest.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import type { ApiKey, ApiKeyAuth } from "./schema.ts";

type ApiKeyDecision =
  | { readonly code: "valid" }
  | { readonly code: "missing" | "unknown"; readonly mode: ApiKeyAuth["mode"]; readonly place: string };

const decisions = new Decisions<ApiKeyDecision>("api_key", {
  valid: () => applied("the API key is valid", { valid: true }),
  missing: ({ mode, place }) =>
    mode === "strict"
      ? rejected(`no API key in ${place}`, { valid: false, reason: "no API key found" })
      : unable(`no API key in ${place}, which mode ${mode} allows`),
  unknown: ({ mode, place }) =>
    mode === "permissive"
      ? failed(`the API key in ${place} is not one of \`keys\`, which mode permissive allows`, { valid: false })
      : rejected(`the API key in ${place} is not one of \`keys\``, { valid: false }),
});

export const apiKey = definePolicy({
  decisions,
  kind: "apiKey",
  phases: ["gateway", "route"],
  prepare(config, cel) {
    const bind = prepareApiKey(config, cel);
    return (deps) => authenticatingHooks(bind(deps));
  },
  redact,
});

/**
 * Compiles the list of keys into a map. The gateway holds only SHA-256 digests of keys, so no dump reveals one. The map is indexed
 * by a keyed digest of that digest: comparing strings takes longer the more of them is equal, and a client that could predict the
 * index could guess a key byte by byte. Throws PolicyError for a key that is listed twice, since only one of the two metadata could
 * apply.
 */
export function prepareApiKey(config: ApiKeyAuth, cel: CelEnvironment): (deps: PolicyDeps) => Authenticator {
  const { mode, location } = config;
  const keys = new Map<string, object>();
  for (const [i, { hash, metadata }] of config.keys.entries()) {
    const known = keyed(hash);
    if (keys.has(known)) throw PolicyError.at(["keys", i], "the same key is listed above; remove one of them");
    keys.set(known, { ...metadata });
  }
  const places = new CredentialPlaces();
  const finder = credentialFinder(location, places, cel);
  // 401 requires a challenge (RFC 9110, section 15.5.2), but no registered scheme covers keys in other places.
  const challenge = challengeFor(location, "ApiKey");
  const place = placeText(location);
  const verifier = (assumedCredential: PolicyDeps["assumedCredential"]) =>
    afterRequestBody(finder.expressions, (context: PolicyContext, trace: PolicyTrace | undefined): Verified => {
      const key = finder.find(context);
      const assumed = assumedCredential?.("apiKey", key, context.request.headers);
      if (key === undefined && assumed === undefined) {
        const decision = { code: "missing", mode, place } as const;
        if (mode === "strict")
          return new MissingCredential(() =>
            decisions.reject(trace, decision, "TG_API_KEY_MISSING", challenge.missing),
          );
        trace?.report(decisions, decision);
        return undefined;
      }
      const text = key ?? "";
      const known = assumed ?? keys.get(keyed(digest("sha256", Buffer.from(text, "latin1"), "hex")));
      const found = known === "invalid" ? undefined : known;
      if (found === undefined) {
        const decision = { code: "unknown", mode, place } as const;
        if (mode !== "permissive") throw decisions.reject(trace, decision, "TG_API_KEY", challenge.invalid);
        trace?.report(decisions, decision);
        return undefined;
      }
      trace?.report(decisions, { code: "valid" });
      return admit(found, text);
    });
  const admit = (found: object, text: string): Admission => {
    // A CEL secret: expressions read the text only by `unredacted()`, so no log line shows it by accident.
    const value = { ...found, key: new CelSecret(Buffer.from(text, "latin1").toString()) };
    return (context) => {
      context.requestMetadata.apiKey = value;
      finder.remove(context);
    };
  };
  return ({ credentials, assumedCredential }) => {
    places.addTo(credentials);
    return { verify: verifier(assumedCredential), discard: finder.discard };
  };
}

/** Redacts digests, which allow offline guessing of short keys, and metadata under names in `hidden`, at any depth. */
function redact({ keys, mode, location }: ApiKeyAuth, hidden: ReadonlySet<string>): unknown {
  const redactedKeys = keys.map(({ metadata }: ApiKey) => ({
    keyHash: REDACTED,
    ...(metadata !== undefined && { metadata: redactMetadata(metadata, hidden) }),
  }));
  return { keys: redactedKeys, mode, location };
}

function redactMetadata(value: unknown, hidden: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((each) => redactMetadata(each, hidden));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([k, v]) => [k, hidden.has(k) ? REDACTED : redactMetadata(v, hidden)]));
}

/** Index of a key in the map. `hash`: SHA-256 of the key, in hexadecimal. */
function keyed(hash: string): string {
  return secretDigest(hash).toString("latin1");
}

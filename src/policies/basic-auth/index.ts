/**
 * `basicAuth` (docs/policies/basic-auth.md): authenticates clients by user name and password (RFC 7617). In: an htpasswd list.
 * Out: `basicAuth.username` for expressions and a request without the credentials, 401 (407 for `Proxy-Authorization`) with a
 * challenge, or 503 while too many passwords wait. Runs in the gateway and route phases.
 *
 * Password hashes are slow by design: 50 ms and more each. So passwords are verified in a separate thread, and results are cached
 * by keyed digests of user and password.
 */
import { BoundedCache } from "../../base/bounded-cache.ts";
import { REDACTED } from "../../base/redaction.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { CredentialPlaces } from "../contract/credential-names.ts";
import { applied, Decisions, rejected, unable } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { MissingCredential } from "../contract/missing-credential.ts";
import { within } from "../contract/policy-error.ts";
import type { Admission, Authenticator, PolicyContext, PolicyTrace, Verified } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { authenticatingHooks } from "../shared/credentials/authenticate.ts";
import { challengeFor } from "../shared/credentials/challenge.ts";
import { credentialFinder } from "../shared/credentials/find.ts";
import { placeText } from "../shared/credentials/places.ts";
import { secretDigest } from "../shared/credentials/secret-digest.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import { isSlow, parseHtpasswd, verifyPassword } from "./htpasswd.ts";
import { type CheckResult, PasswordChecks } from "./password-checks.ts";
import type { BasicAuth } from "./schema.ts";

type BasicAuthDecision =
  | { readonly code: "valid" | "busy" }
  | { readonly code: "missing"; readonly mode: BasicAuth["mode"]; readonly place: string }
  | { readonly code: "malformed" | "wrong"; readonly place: string };

const decisions = new Decisions<BasicAuthDecision>("basic_auth", {
  valid: () => applied("user and password are right", { valid: true }),
  busy: () => rejected("too many passwords are waiting to be checked", { valid: false, busy: true }),
  missing: ({ mode, place }) =>
    mode === "strict"
      ? rejected(`no credentials in ${place}`, { valid: false, reason: "no credentials found" })
      : unable(`no credentials in ${place}, which mode ${mode} allows`),
  malformed: ({ place }) => rejected(`${place} is not user:password in base64 of UTF-8`, { valid: false }),
  wrong: ({ place }) => rejected(`user and password in ${place} match no entry of \`htpasswd\``, { valid: false }),
});

export const basicAuth = definePolicy({
  decisions,
  kind: "basicAuth",
  phases: ["gateway", "route"],
  prepare(config: BasicAuth, cel) {
    const bind = prepareBasicAuth(config, cel);
    return (deps) => authenticatingHooks(bind(deps));
  },
  redact: ({ htpasswd: _users, ...config }) => ({ htpasswd: REDACTED, ...config }),
});

/** Valid credentials that are remembered, as keyed digests of 32 bytes. */
const MAX_KNOWN = 4096;
/** Invalid ones. Clients with an old password repeat it with every request, and each would take its turn in the thread. */
const MAX_WRONG = 1024;
/**
 * Bytes. The limit of crypt(3) in libxcrypt. `$5$` and `$6$` take time by the square of the length, so long passwords would occupy
 * the thread for minutes.
 */
const MAX_PASSWORD = 512;

/** One per worker, shared by all policies and kept over reloads: more threads would take processor time from traffic. */
const checks = new PasswordChecks();

/** Response when the queue is full. */
const BUSY = { headers: ["retry-after", "1"] };

interface Credentials {
  readonly user: string;
  readonly password: string;
}

/**
 * Parses the users and returns the hook. Caches belong to the configuration: after a reload with another password, the old one is
 * not remembered. Throws PolicyError with the line of the list that is wrong.
 */
export function prepareBasicAuth(config: BasicAuth, cel: CelEnvironment): (deps: PolicyDeps) => Authenticator {
  const { mode, authorizationLocation } = config;
  const users = within(["htpasswd"], () => parseHtpasswd(config.htpasswd ?? ""));
  const [anyone] = users.values();
  const known = new BoundedCache<true>(MAX_KNOWN);
  const places = new CredentialPlaces();
  const finder = credentialFinder(authorizationLocation, places, cel);
  const challenge = challengeFor(authorizationLocation, "Basic", config.realm);

  const wrong = new BoundedCache<true>(MAX_WRONG);
  const underWay = new Map<string, Promise<CheckResult>>();

  const verify = (
    { user, password }: Credentials,
    context: PolicyContext,
    shadow: boolean,
  ): CheckResult | Promise<CheckResult> => {
    const digest = secretDigest(user, password).toString("latin1");
    if (known.get(digest)) return "right";
    if (wrong.get(digest)) return "wrong";
    // Unknown users are verified against the hash of another: the response time must not tell which users exist.
    const own = users.get(user);
    const hashed = own ?? anyone;
    if (hashed === undefined || Buffer.byteLength(password) > MAX_PASSWORD) return "wrong";
    const conclude = (result: CheckResult): CheckResult => {
      underWay.delete(digest);
      if (result === "busy") return result;
      const right = result === "right" && own !== undefined;
      (right ? known : wrong).set(digest, true);
      return right ? "right" : "wrong";
    };
    if (!isSlow(hashed)) return conclude(verifyPassword(hashed, password) ? "right" : "wrong");
    // Requests with equal credentials share one verification: a page loads many resources at once.
    let check = underWay.get(digest);
    if (check === undefined) {
      check = checks.check(context.variables.source?.address ?? "", hashed, password, shadow).then(conclude);
      underWay.set(digest, check);
    }
    return check;
  };
  const place = placeText(authorizationLocation);
  const conclude = (trace: PolicyTrace | undefined, user: string, result: CheckResult): Admission => {
    if (result === "busy") throw decisions.reject(trace, { code: "busy" }, "TG_BASIC_AUTH_BUSY", BUSY);
    if (result === "wrong") throw decisions.reject(trace, { code: "wrong", place }, "TG_BASIC_AUTH", challenge.invalid);
    trace?.report(decisions, { code: "valid" });
    return (context) => {
      context.requestMetadata.basicAuth = { username: user };
      finder.remove(context);
    };
  };

  const verifier = (shadow: boolean, assumedCredential: PolicyDeps["assumedCredential"]) =>
    afterRequestBody(finder.expressions, (context: PolicyContext, trace: PolicyTrace | undefined): Verified => {
      const credential = finder.find(context);
      const assumed = assumedCredential?.("basicAuth", credential, context.request.headers);
      if (assumed !== undefined)
        return assumed === "invalid"
          ? conclude(trace, "", "wrong")
          : conclude(trace, String(assumed.username ?? ""), "right");
      if (credential === undefined) {
        const decision = { code: "missing", mode, place } as const;
        if (mode === "strict")
          return new MissingCredential(() =>
            decisions.reject(trace, decision, "TG_BASIC_AUTH_MISSING", challenge.missing),
          );
        trace?.report(decisions, decision);
        return undefined;
      }
      const credentials = parseCredentials(credential);
      if (credentials === undefined)
        throw decisions.reject(trace, { code: "malformed", place }, "TG_BASIC_AUTH", challenge.invalid);
      const result = verify(credentials, context, shadow);
      if (result instanceof Promise) return result.then((each) => conclude(trace, credentials.user, each));
      return conclude(trace, credentials.user, result);
    });
  return ({ credentials, shadow = false, assumedCredential }) => {
    places.addTo(credentials);
    return { verify: verifier(shadow, assumedCredential), discard: finder.discard };
  };
}

/**
 * `user:password` in base64 of UTF-8 (RFC 7617, sections 2 and 2.1); undefined for anything else. The first colon separates:
 * passwords may contain more.
 */
function parseCredentials(text: string): Credentials | undefined {
  if (!/^[0-9A-Za-z+/]+={0,2}$/.test(text)) return undefined;
  try {
    const decoded = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(text, "base64"));
    const colon = decoded.indexOf(":");
    return colon < 0 ? undefined : { user: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
  } catch {
    return undefined;
  }
}

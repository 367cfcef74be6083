/**
 * The policies that accept `shadow: true`. In a policy set, a shadow policy has its own key, next to the key of the enforced policy of the
 * same kind.
 */
import { shadowKey } from "../../trace/policy-kinds.ts";

export { shadowKey };

/** The compiler compares this list with the schemas and with the modules. */
const SHADOWABLE = [
  "apiKey",
  "authorization",
  "basicAuth",
  "concurrencyLimit",
  "csrf",
  "extAuthz",
  "ipAccess",
  "jwtAuth",
  "localRateLimit",
  "satisfy",
] as const;

export type ShadowableKind = (typeof SHADOWABLE)[number];

/** The reason of most kinds. */
export const DECIDES_NOTHING = "it does not decide which requests pass";

/** The other kinds, with the reason for users. `registry.ts` does not compile for a kind that is in neither list. */
const NOT_SHADOWABLE = {
  backendAuth: DECIDES_NOTHING,
  buffer: "it decides by holding the body back",
  compression: DECIDES_NOTHING,
  cors: DECIDES_NOTHING,
  delay: DECIDES_NOTHING,
  directResponse: DECIDES_NOTHING,
  errorPages: DECIDES_NOTHING,
  extProc: "its service has to hold and change the messages that it decides about",
  grpcWeb: DECIDES_NOTHING,
  maxRequestBodySize: "it decides while the body arrives",
  oidc: "its logins happen at the provider and in the browser",
  remoteRateLimit: "its service would count the requests; try the limit there (`shadow_mode` of Envoy's service)",
  requestHeaderModifier: DECIDES_NOTHING,
  requestMirror: DECIDES_NOTHING,
  requestRedirect: DECIDES_NOTHING,
  responseHeaderModifier: DECIDES_NOTHING,
  retry: DECIDES_NOTHING,
  sessionPersistence: DECIDES_NOTHING,
  timeout: DECIDES_NOTHING,
  transformations: DECIDES_NOTHING,
  urlRewrite: DECIDES_NOTHING,
} as const;

export type UnshadowableKind = keyof typeof NOT_SHADOWABLE;

/** Why a kind cannot be in shadow; undefined for settings of connections, which decide nothing. */
export function whyNotShadowable(kind: string): string | undefined {
  return Object.hasOwn(NOT_SHADOWABLE, kind) ? NOT_SHADOWABLE[kind as UnshadowableKind] : undefined;
}

/** The key of a kind's shadow policy in a set, such as `shadowJwtAuth`. */
export type ShadowKey<Kind extends ShadowableKind = ShadowableKind> = ReturnType<typeof shadowKey<Kind>>;

/** Whether users can write this kind with `shadow: true`. */
export function isShadowable(kind: string): kind is ShadowableKind {
  return (SHADOWABLE as readonly string[]).includes(kind);
}

const WRITTEN: ReadonlyMap<string, ShadowableKind> = new Map(SHADOWABLE.map((kind) => [shadowKey(kind), kind]));

/** Whether a key of a set is that of a shadow policy. */
export function isShadowKey(key: string): key is ShadowKey {
  return WRITTEN.has(key);
}

/** The field where users write the policy with this key. */
export function writtenKind(key: string): string {
  return WRITTEN.get(key) ?? key;
}

/** The kinds as a text for messages. */
export const SHADOWABLE_KINDS = SHADOWABLE.join(", ");

/**
 * The policies that accept `shadow: true`. In a policy set, a shadow policy has its own key, next to the key of the enforced policy of the
 * same kind.
 */

/** The compiler compares this list with the schemas and with the modules. */
const SHADOWABLE = ["apiKey", "authorization", "basicAuth", "extAuthz", "jwtAuth", "localRateLimit"] as const;

export type ShadowableKind = (typeof SHADOWABLE)[number];

/** The key of a kind's shadow policy in a set, such as `shadowJwtAuth`. */
export type ShadowKey<Kind extends ShadowableKind = ShadowableKind> = `shadow${Capitalize<Kind>}`;

export function shadowKey<Kind extends ShadowableKind>(kind: Kind): ShadowKey<Kind> {
  return `shadow${kind.charAt(0).toUpperCase()}${kind.slice(1)}` as ShadowKey<Kind>;
}

/** Whether users can write this kind with `shadow: true`. */
export function isShadowable(kind: string): kind is ShadowableKind {
  return (SHADOWABLE as readonly string[]).includes(kind);
}

const KEYS: ReadonlySet<string> = new Set(SHADOWABLE.map(shadowKey));

/** Whether a key of a set is that of a shadow policy. */
export function isShadowKey(key: string): key is ShadowKey {
  return KEYS.has(key);
}

/** The field where users write the policy with this key. */
export function writtenKind(key: string): string {
  return isShadowKey(key) ? `${key.charAt(6).toLowerCase()}${key.slice(7)}` : key;
}

/** The kinds as a text for messages. */
export const SHADOWABLE_KINDS = SHADOWABLE.join(", ");

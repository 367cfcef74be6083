/**
 * The policies that accept `shadow: true`. In a policy set, a shadow policy has its own key, next to the key of the enforced policy of the
 * same kind.
 */
import { shadowKey } from "../../trace/policy-kinds.ts";

export { shadowKey };

/** The compiler compares this list with the schemas and with the modules. */
const SHADOWABLE = ["apiKey", "authorization", "basicAuth", "extAuthz", "jwtAuth", "localRateLimit"] as const;

export type ShadowableKind = (typeof SHADOWABLE)[number];

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

/** The policies of one level, kind by kind, as they run. Their types are those of the schemas. */
import type { z } from "zod";
import type { SettingKind, UpstreamSettings } from "../upstream/settings/settings.ts";
import type { Resolver } from "./contract/resolver.ts";
import type { ShadowableKind, ShadowKey } from "./contract/shadow.ts";
import type { Oidc } from "./oidc/schema.ts";
import type { RequestMirror } from "./request-mirror/schema.ts";
import type { Satisfy } from "./satisfy/schema.ts";
import type { ConfigOf } from "./schema/resolved.ts";
import type { POLICY_SCHEMAS } from "./schemas.ts";

type Schemas = typeof POLICY_SCHEMAS;

/** Every kind that users write as a policy. */
export type PolicyKind = keyof Schemas;

/** Kinds that run on requests; the others are settings of the connections to a backend. */
export type RequestPolicyKind = Exclude<PolicyKind, SettingKind>;

/** Kinds whose runtime type is not `Resolved` of their schema; their `resolve` returns it. */
interface Reshaped extends UpstreamSettings {
  readonly oidc: Oidc;
  readonly requestMirror: RequestMirror;
  readonly satisfy: Satisfy;
}

type Configs = {
  readonly [Kind in PolicyKind]: Kind extends keyof Reshaped
    ? Reshaped[Kind]
    : Unmarked<ConfigOf<Schemas[Kind]["schema"]>>;
};

/** Without the field `shadow`, which no configuration has: in a set, the key of a policy says whether it is a shadow policy. */
type Unmarked<Config> = Config extends readonly (infer Item)[]
  ? readonly Unmarked<Item>[]
  : "shadow" extends FieldsOf<Config>
    ? Omit<Config, "shadow">
    : Config;

/** Without an object of any fields. */
type FieldsOf<Written> = Written extends readonly (infer Item)[]
  ? FieldsOf<Item>
  : string extends keyof Written
    ? never
    : keyof Written;

type ShadowConfigs = { readonly [Kind in ShadowableKind as ShadowKey<Kind>]: Configs[Kind] };

/** The keys of a set. */
export type SetKey = PolicyKind | ShadowKey;

/** Keys of policies that run on requests. */
export type RequestPolicyKey = RequestPolicyKind | ShadowKey;

/** The runtime configuration of a policy, including lists of alternatives. */
export type PolicyConfig<Key extends SetKey> = (Configs & ShadowConfigs)[Key];

/** What users write for a kind, as parsed by its schema. */
type PolicyInput<Kind extends PolicyKind> = z.output<Schemas[Kind]["schema"]>;

/**
 * The policies of one level, one value per kind, and one per kind with `shadow: true`. Absent ones have no key. The two never meet: sets
 * are merged key by key, so that a shadow policy can neither replace nor weaken what is enforced at another level.
 */
export type PolicySet = { readonly [Key in SetKey]?: PolicyConfig<Key> | undefined };

/** What users write, kind by kind. */
export type PolicyInputs = { readonly [Kind in PolicyKind]?: PolicyInput<Kind> | undefined };

/**
 * The `resolve` of each kind. `POLICY_SCHEMAS` must have this type; a `resolve` with the wrong result does not compile, and neither does a
 * schema whose field `shadow` contract/shadow.ts does not know of.
 */
export type ResolveTable = {
  readonly [Kind in PolicyKind]: {
    readonly resolve: (written: PolicyInput<Kind>, resolver: Resolver) => PolicyConfig<Kind>;
  } & (HasShadow<Kind> extends (Kind extends ShadowableKind ? true : false) ? unknown : "see contract/shadow.ts");
};

type HasShadow<Kind extends PolicyKind> = "shadow" extends FieldsOf<PolicyInput<Kind>> ? true : false;

/** The policies of one level, kind by kind, as they run. Their types are those of the schemas. */
import type { z } from "zod";
import type { SettingKind, UpstreamSettings } from "../upstream/settings/settings.ts";
import type { Resolver } from "./contract/resolver.ts";
import type { Oidc } from "./oidc/schema.ts";
import type { RequestMirror } from "./request-mirror/schema.ts";
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
}

type Configs = {
  readonly [Kind in PolicyKind]: Kind extends keyof Reshaped ? Reshaped[Kind] : ConfigOf<Schemas[Kind]["schema"]>;
};

/** The runtime configuration of a kind, including lists of alternatives. */
export type PolicyConfig<Kind extends PolicyKind> = Configs[Kind];

/** What users write for a kind, as parsed by its schema. */
type PolicyInput<Kind extends PolicyKind> = z.output<Schemas[Kind]["schema"]>;

/** The policies of one level, one value per kind. Absent kinds have no key. */
export type PolicySet = { readonly [Kind in PolicyKind]?: Configs[Kind] | undefined };

/** What users write, kind by kind. */
export type PolicyInputs = { readonly [Kind in PolicyKind]?: PolicyInput<Kind> | undefined };

/** The `resolve` of each kind. `POLICY_SCHEMAS` must have this type; a `resolve` with the wrong result does not compile. */
export type ResolveTable = {
  readonly [Kind in PolicyKind]: {
    readonly resolve: (written: PolicyInput<Kind>, resolver: Resolver) => PolicyConfig<Kind>;
  };
};

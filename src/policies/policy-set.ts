/** The policies of one level, kind by kind, as they run. Their types are those of the schemas. */
import type { z } from "zod";
import type { SettingKind, UpstreamSettings } from "../upstream/settings.ts";
import type { Oidc } from "./oidc/schema.ts";
import type { RequestMirror } from "./request-mirror/schema.ts";
import type { ConfigOf } from "./resolve.ts";
import type { Resolver } from "./resolver.ts";
import type { POLICY_SCHEMAS } from "./schemas.ts";

type Schemas = typeof POLICY_SCHEMAS;

/** Everything that users write as a policy. */
export type PolicyKind = keyof Schemas;

/** Those that work on requests; the others are settings of the connections to a backend. */
export type RequestPolicyKind = Exclude<PolicyKind, SettingKind>;

/** Kinds of which what runs has another shape than what is written; their `resolve` makes it. */
interface Reshaped extends UpstreamSettings {
  readonly oidc: Oidc;
  readonly requestMirror: RequestMirror;
}

type Configs = {
  readonly [Kind in PolicyKind]: Kind extends keyof Reshaped ? Reshaped[Kind] : ConfigOf<Schemas[Kind]["schema"]>;
};

/** What runs for a kind; includes lists of alternatives. */
export type PolicyConfig<Kind extends PolicyKind> = Configs[Kind];

/** What users write for a kind, after its schema. */
export type PolicyInput<Kind extends PolicyKind> = z.output<Schemas[Kind]["schema"]>;

/** One value per kind; an absent key costs nothing at run time. */
export type PolicySet = { readonly [Kind in PolicyKind]?: Configs[Kind] | undefined };

/** What users write, kind by kind. */
export type PolicyInputs = { readonly [Kind in PolicyKind]?: PolicyInput<Kind> | undefined };

/** How each kind becomes what runs; `POLICY_SCHEMAS` has this type, or does not compile where it is used. */
export type ResolveTable = {
  readonly [Kind in PolicyKind]: {
    readonly resolve: (written: PolicyInput<Kind>, resolver: Resolver) => PolicyConfig<Kind>;
  };
};

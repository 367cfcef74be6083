/** The policies of one level, kind by kind, as they run. Their types are those of the schemas. */
import type { z } from "zod";
import type { Oidc } from "./oidc/schema.ts";
import type { RequestMirror } from "./request-mirror/schema.ts";
import type { ConfigOf } from "./resolve.ts";
import type { POLICY_SCHEMAS } from "./schemas.ts";

type Schemas = typeof POLICY_SCHEMAS;

export type PolicyKind = keyof Schemas;

/** Kinds of which what runs has another shape than what is written; their `resolve` makes it. */
interface Reshaped {
  readonly oidc: Oidc;
  readonly requestMirror: RequestMirror;
}

type Configs = {
  readonly [Kind in PolicyKind]: Kind extends keyof Reshaped ? Reshaped[Kind] : ConfigOf<Schemas[Kind]>;
};

/** What runs for a kind; includes lists of alternatives. */
export type PolicyConfig<Kind extends PolicyKind> = Configs[Kind];

/** What users write for a kind, after its schema. */
export type PolicyInput<Kind extends PolicyKind> = z.output<Schemas[Kind]>;

/** One value per kind; an absent key costs nothing at run time. */
export type PolicySet = { readonly [Kind in PolicyKind]?: Configs[Kind] | undefined };

import { REDACTED } from "../trace/redaction.ts";
import type { Hidden } from "./policy.ts";
import type { PolicyConfig, PolicyKind } from "./policy-set.ts";
import { KINDS } from "./registry.ts";

/**
 * A policy's configuration for dumps, without secrets and with its times as texts. Nothing is shown of a kind that is not in
 * the registry. `config` belongs to `kind`: dumps keep policies as plain data.
 */
export function redactPolicy(kind: string, config: unknown, hidden: Hidden): unknown {
  return isKind(kind) ? redactKind(kind, config as PolicyConfig<typeof kind>, hidden) : REDACTED;
}

function redactKind<Kind extends PolicyKind>(kind: Kind, config: PolicyConfig<Kind>, hidden: Hidden): unknown {
  return KINDS[kind].redact(config, hidden);
}

function isKind(kind: string): kind is PolicyKind {
  return Object.hasOwn(KINDS, kind);
}

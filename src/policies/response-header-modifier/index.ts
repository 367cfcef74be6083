import type { PolicyDeps } from "../deps.ts";
import type { HeaderModifier } from "../policy-set.ts";
import { applyHeaderEdits, compileHeaderEdits, pickHeaders, redactModifier } from "../shared/header-edits.ts";
import type { CompiledPolicy } from "../types.ts";

const KIND = "responseHeaderModifier";

/**
 * Adds, sets and removes response headers (reference 3.13), also of responses that the gateway makes itself. Throws for
 * headers that may not be touched and for values that cannot be sent.
 */
export function create(config: HeaderModifier, { hidden }: PolicyDeps): CompiledPolicy {
  const edits = compileHeaderEdits(KIND, config);
  const redacted = redactModifier(config, hidden);
  const names = new Set(edits.map((edit) => edit.name));
  return {
    kind: KIND,
    onResponse({ trace }, response) {
      if (trace === undefined) {
        applyHeaderEdits(edits, response.headers);
        return;
      }
      const before = pickHeaders(response.headers, names, hidden);
      applyHeaderEdits(edits, response.headers);
      trace.applied("response_header_modifier", redacted, before, pickHeaders(response.headers, names, hidden));
    },
  };
}

import type { PolicyDeps } from "../deps.ts";
import { definePolicy } from "../policy.ts";
import type { HeaderModifier } from "../shared/field-schemas.ts";
import { applyHeaderEdits, compileHeaderEdits, pickHeaders, redactModifier } from "../shared/header-edits.ts";
import type { PolicyHooks } from "../types.ts";

export const responseHeaderModifier = definePolicy({
  kind: "responseHeaderModifier",
  phases: ["route", "backend"],
  traceStage: "response header modifier",
  prepare,
  redact: redactModifier,
});

/**
 * Adds, sets and removes response headers (reference 3.13), also of responses that the gateway makes itself. Throws for
 * headers that may not be touched and for values that cannot be sent.
 */
function prepare(config: HeaderModifier): (deps: PolicyDeps) => PolicyHooks {
  const edits = compileHeaderEdits(config);
  const names = new Set(edits.map((edit) => edit.name));
  return ({ hidden }) => {
    const redacted = redactModifier(config, hidden);
    return {
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
  };
}

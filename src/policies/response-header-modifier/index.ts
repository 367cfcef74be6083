/**
 * `responseHeaderModifier`: adds, sets and removes response header fields (docs/policies/response-header-modifier.md, Gateway API
 * HTTPHeaderFilter). In: a response of the backend or of the gateway itself. Out: the same response with other fields.
 */
import { Decisions } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import {
  applyHeaderEdits,
  compileHeaderEdits,
  type HeadersModified,
  modified,
  pickHeaders,
  redactModifier,
} from "../contract/header-edits.ts";
import type { PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { HeaderModifier } from "../schema/fields.ts";

const decisions = new Decisions<HeadersModified>("response_header_modifier", { modified });

export const responseHeaderModifier = definePolicy({
  decisions,
  kind: "responseHeaderModifier",
  phases: ["route", "backend"],
  prepare,
  redact: redactModifier,
});

/** Throws a PolicyError for fields that frame the message and for values that are not valid. */
function prepare(config: HeaderModifier): (deps: PolicyDeps) => PolicyHooks {
  const edits = compileHeaderEdits(config);
  const names = new Set(edits.map((edit) => edit.name));
  return ({ hidden }) => {
    const modifier = redactModifier(config, hidden);
    return {
      onResponse({ trace }, response) {
        // Untraced requests, nearly all, must not pay for the snapshots.
        if (trace === undefined) {
          applyHeaderEdits(edits, response.headers);
          return;
        }
        const before = pickHeaders(response.headers, names, hidden);
        applyHeaderEdits(edits, response.headers);
        trace.report(decisions, { code: "modified", modifier }, before, pickHeaders(response.headers, names, hidden));
      },
    };
  };
}

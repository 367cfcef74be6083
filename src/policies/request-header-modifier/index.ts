import type { HttpRequest } from "../../http/message.ts";
import type { PolicyDeps } from "../deps.ts";
import { definePolicy } from "../policy.ts";
import { PolicyError } from "../policy-error.ts";
import type { HeaderModifier } from "../shared/field-schemas.ts";
import {
  applyHeaderEdits,
  compileHeaderEdits,
  type HeaderEdit,
  pickHeaders,
  redactModifier,
} from "../shared/header-edits.ts";
import { isAuthority } from "../shared/url-change.ts";
import type { OutgoingContext } from "../types.ts";

export const requestHeaderModifier = definePolicy({
  kind: "requestHeaderModifier",
  phases: ["route", "backend"],
  traceStage: "request header modifier",
  calls: "apply",
  prepare: prepareRequestEdits,
  redact: redactModifier,
});

type Deps = Pick<PolicyDeps, "hidden" | "ownFields">;

/** What it does to a request of a client, or of the gateway itself. */
export interface RequestEditor {
  readonly onRequest: (context: OutgoingContext) => undefined;
}

/**
 * Adds, sets and removes request headers (reference 3.13). `Host` stands for the authority: adding or setting it replaces
 * the authority and keeps it from being replaced by the backend's name; a request cannot go without one, so removing it
 * does nothing. Throws for headers that may not be touched and for values that cannot be sent.
 */
export function prepareRequestEdits(config: HeaderModifier): (deps: Deps) => RequestEditor {
  const all = compileHeaderEdits(config);
  const edits = all.filter((edit) => edit.name !== "host");
  const authority = newAuthority(config, all);
  const names = new Set(all.map((edit) => edit.name));
  const apply = (context: OutgoingContext): void => {
    if (authority !== undefined) {
      context.request.authority = authority;
      context.authorityMode = "fixed";
    }
    applyHeaderEdits(edits, context.request.headers);
  };
  return ({ hidden, ownFields }) => {
    for (const { name } of edits) ownFields.add(name);
    const redacted = redactModifier(config, hidden);
    return {
      onRequest(context) {
        const { request, trace } = context;
        if (trace === undefined) {
          apply(context);
          return undefined;
        }
        const before = touched(request, names, hidden);
        apply(context);
        trace.applied("request_header_modifier", redacted, before, touched(request, names, hidden));
        return undefined;
      },
    };
  };
}

/** The last of the edits that give Host a value decides. Throws a PolicyError for one that is no authority. */
function newAuthority(config: HeaderModifier, edits: readonly HeaderEdit[]): string | undefined {
  let authority: string | undefined;
  for (const { action, name, value } of edits) {
    if (name !== "host" || (action !== "add" && action !== "set")) continue;
    const key = Object.keys(config[action] ?? {}).find((each) => each.toLowerCase() === name) ?? name;
    if (!isAuthority(value))
      throw new PolicyError([{ path: [action], key, reason: `Host: ${JSON.stringify(value)} is not host[:port]` }]);
    authority = value;
  }
  return authority;
}

function touched(
  request: HttpRequest,
  names: ReadonlySet<string>,
  hidden: ReadonlySet<string>,
): Record<string, string> {
  const headers = pickHeaders(request.headers, names, hidden);
  return names.has("host") ? { host: request.authority, ...headers } : headers;
}

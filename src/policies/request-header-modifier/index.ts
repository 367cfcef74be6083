import type { HttpRequest } from "../../http/message.ts";
import type { PolicyDeps } from "../deps.ts";
import type { HeaderModifier } from "../policy-set.ts";
import {
  applyHeaderEdits,
  compileHeaderEdits,
  type HeaderEdit,
  pickHeaders,
  redactModifier,
} from "../shared/header-edits.ts";
import { checkAuthority } from "../shared/target-parts.ts";
import type { OutgoingContext, OutgoingPolicy } from "../types.ts";

const KIND = "requestHeaderModifier";

/**
 * Adds, sets and removes request headers (reference 3.13). `Host` stands for the authority: adding or setting it replaces
 * the authority and keeps it from being replaced by the backend's name; a request cannot go without one, so removing it
 * does nothing. Throws for headers that may not be touched and for values that cannot be sent.
 */
export function create(
  config: HeaderModifier,
  { hidden, ownFields }: Pick<PolicyDeps, "hidden" | "ownFields">,
): OutgoingPolicy {
  const all = compileHeaderEdits(KIND, config);
  const edits = all.filter((edit) => edit.name !== "host");
  for (const { name } of edits) ownFields.add(name);
  const authority = newAuthority(all);
  const redacted = redactModifier(config, hidden);
  const names = new Set(all.map((edit) => edit.name));
  const apply = (context: OutgoingContext): void => {
    if (authority !== undefined) {
      context.request.authority = authority;
      context.authorityMode = "fixed";
    }
    applyHeaderEdits(edits, context.request.headers);
  };
  return {
    kind: KIND,
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
}

/** The last of the edits that give Host a value decides. */
function newAuthority(edits: readonly HeaderEdit[]): string | undefined {
  let authority: string | undefined;
  for (const { action, name, value } of edits) {
    if (name !== "host" || action === "remove") continue;
    checkAuthority(`${KIND}.${action}: Host`, value);
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

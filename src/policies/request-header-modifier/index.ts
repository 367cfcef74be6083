/**
 * `requestHeaderModifier`: adds, sets and removes request header fields (docs/policies/request-header-modifier.md, Gateway API
 * HTTPHeaderFilter). In: a client's request, or a callout's as one of its `policies`. Out: the same request with other fields,
 * and with another authority where `Host` is set.
 */
import type { HttpRequest } from "../../http/message/message.ts";
import { Decisions } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import {
  applyHeaderEdits,
  compileHeaderEdits,
  type HeaderEdit,
  type HeadersModified,
  modified,
  pickHeaders,
  redactModifier,
} from "../contract/header-edits.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { OutgoingContext } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { HeaderModifier } from "../schema/fields.ts";
import { isAuthority } from "../shared/url-change.ts";

const decisions = new Decisions<HeadersModified>("request_header_modifier", { modified });

export const requestHeaderModifier = definePolicy({
  decisions,
  kind: "requestHeaderModifier",
  phases: ["route", "backend"],
  calls: "apply",
  prepare: prepareRequestEdits,
  redact: redactModifier,
});

type Deps = Pick<PolicyDeps, "hidden" | "ownFields">;

/** Edits a client's request or a callout's. Synchronous, so that neither pays for a promise. */
interface RequestEditor {
  readonly onRequest: (context: OutgoingContext) => undefined;
}

/**
 * Compiles the edits. `Host` means the authority: adding or setting it replaces the authority, which then stays instead of
 * becoming the backend's name. Removing it does nothing, because every request has an authority (RFC 9110, section 7.2). Throws a
 * PolicyError for fields that frame the message and for values that are not valid.
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
    // Clients must not be able to imitate a field that the backend trusts, such as `x_user` for `x-user`.
    for (const { name } of edits) ownFields.add(name);
    const modifier = redactModifier(config, hidden);
    return {
      onRequest(context) {
        const { request, trace } = context;
        if (trace === undefined) {
          apply(context);
          return undefined;
        }
        const before = touched(request, names, hidden);
        apply(context);
        trace.report(decisions, { code: "modified", modifier }, before, touched(request, names, hidden));
        return undefined;
      },
    };
  };
}

/** The value of the last edit of Host, if any. Throws a PolicyError for a value that is not an authority. */
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

/** The fields that the policy names, for the snapshots of a trace. */
function touched(
  request: HttpRequest,
  names: ReadonlySet<string>,
  hidden: ReadonlySet<string>,
): Record<string, string> {
  const headers = pickHeaders(request.headers, names, hidden);
  return names.has("host") ? { host: request.authority, ...headers } : headers;
}

import type { HttpRequest, LocalReply } from "../../http/message.ts";
import { sensitiveHeaders } from "../../trace/redaction.ts";
import type { PolicyDeps } from "../deps.ts";
import type { CompiledPolicy, PolicyContext, PolicyTrace } from "../types.ts";

/** Dependencies for policies under test. */
export const DEPS: PolicyDeps = { hidden: sensitiveHeaders([]) };

/** A context as a request to `http://example.com:8080/shop/cart?page=2`, matched by the prefix `/shop`, has it. */
export function contextOf(
  request: Partial<HttpRequest> = {},
  more: Partial<Pick<PolicyContext, "matchedPrefix" | "trace">> = {},
): PolicyContext {
  return {
    request: {
      method: "GET",
      scheme: "http",
      authority: "example.com:8080",
      path: "/shop/cart",
      search: "?page=2",
      version: "HTTP/1.1",
      headers: [],
      ...request,
    },
    matchedPrefix: "/shop",
    trace: undefined,
    requestTimeout: 0,
    backendRequestTimeout: 0,
    authorityMode: "auto",
    ...more,
  };
}

/** Runs a policy that must answer at once. */
export function replyOf(policy: CompiledPolicy, context: PolicyContext): LocalReply {
  const outcome = policy.onRequest?.(context);
  if (outcome === undefined || outcome instanceof Promise) throw new Error(`${policy.kind} did not answer`);
  return outcome;
}

/** Keeps what policies report. */
export class RecordedTrace implements PolicyTrace {
  readonly events: unknown[] = [];

  applied(kind: string, details: unknown, before?: unknown, after?: unknown): void {
    this.events.push({ kind, details, ...(before !== undefined && { before, after }) });
  }
  skipped(kind: string, reason: string): void {
    this.events.push({ kind, reason });
  }
}

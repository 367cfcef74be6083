import assert from "node:assert/strict";
import { ms } from "../../base/durations.ts";
import { GatewayError } from "../../base/errors.ts";
import { type ResponseParts, type SourceParts, STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { FIRST_HOP } from "../../http/loop.ts";
import type { HttpRequest, LocalReply } from "../../http/message/message.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { sensitiveHeaders } from "../../trace/redaction.ts";
import { NO_UPSTREAM } from "../../upstream/callouts/callout.ts";
import { fetchThrough } from "../../upstream/callouts/fetch.ts";
import { Resolver } from "../../upstream/resolve/resolver.ts";
import type { CompiledPolicy } from "../compile.ts";
import { CredentialNames } from "../contract/credential-names.ts";
import type { Decision, Decisions } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { applyHeaderEdits, type HeaderEdit } from "../contract/header-edits.ts";
import { OwnFields } from "../contract/own-fields.ts";
import { defined } from "../contract/resolver.ts";
import type {
  AuthorizationRuleResult,
  BodyStart,
  IncomingBody,
  OutboundTrace,
  PolicyContext,
  PolicyTrace,
  RequestMetadata,
  ShadowDecision,
} from "../contract/types.ts";
import type { Policy } from "../define/policy.ts";
import type { RequestPolicyKey } from "../policy-set.ts";
import { RequestCounts } from "../request-counts/request-counts.ts";
import { errorReply } from "../shared/rejection.ts";
import { SharedSessions } from "../shared-sessions/shared-sessions.ts";
import { TokenBuckets } from "../token-buckets/buckets.ts";

/** Dependencies for policies under test. */
export const DEPS: PolicyDeps = {
  hidden: sensitiveHeaders([]),
  cel: STANDARD_ENVIRONMENT,
  callouts: () => NO_UPSTREAM,
  credentials: new CredentialNames(),
  ownFields: new OwnFields(),
  buckets: new TokenBuckets(),
  requestCounts: new RequestCounts(),
  fetch: fetchThrough(new Resolver("All", ANYWHERE)),
  oidcSessions: new SharedSessions(),
  sessionKey: new Uint8Array(32),
  phase: "route",
  identity: "route test policy",
  shared: "route test policy",
};

/** Prepares policies of a kind, and binds them to `deps`. */
export function creatorOf<Name extends RequestPolicyKey, Config>({ kind, prepare }: Policy<Name, Config>) {
  return (config: Config, deps = DEPS): CompiledPolicy => ({
    kind,
    phase: deps.phase,
    ...prepare(config, deps.cel)(deps),
  });
}

/** A context without a gateway: policies can be tested by their effects on it. */
export interface TestContext extends PolicyContext {
  /** Header fields that edits of the response have made so far. */
  responseHeaders(): string[];
  /** Ends the exchange. */
  end(): void;
}

interface More extends Partial<Pick<PolicyContext, "matchedPrefix" | "trace">> {
  /** Body of the request. */
  readonly body?: string;
  readonly responseBody?: string;
  /** The only endpoint, which responds. */
  readonly endpoint?: string;
  readonly source?: Partial<SourceParts>;
  readonly response?: ResponseParts;
}

/** The context of a request to `http://example.com:8080/shop/cart?page=2`, matched by the prefix `/shop`. */
export function contextOf(request: Partial<HttpRequest> = {}, more: More = {}): TestContext {
  const edits: HeaderEdit[] = [];
  const closed: (() => void)[] = [];
  const requestMetadata: RequestMetadata = {};
  const message: HttpRequest = {
    method: "GET",
    scheme: "http",
    authority: "example.com:8080",
    path: "/shop/cart",
    search: "?page=2",
    version: "HTTP/1.1",
    headers: [],
    ...request,
  };
  const body = new TestBody(more.body ?? "");
  return {
    loop: FIRST_HOP,
    request: message,
    matchedPrefix: "matchedPrefix" in more ? more.matchedPrefix : "/shop",
    matchedPath: more.matchedPrefix ?? "/shop",
    trace: more.trace,
    requestTimeout: ms(0),
    backendRequestTimeout: ms(0),
    authorityMode: "auto",
    retry: undefined,
    acceptedCoding: undefined,
    session: undefined,
    preferEndpoint: (name) => name === more.endpoint,
    calledEndpoint: more.endpoint,
    requestMetadata,
    holdMetadata() {},
    clientAddress: more.source?.address ?? "192.0.2.1",
    clientIsReported: false,
    requestBody: body,
    requestLength: body.bytes.length,
    limitRequestBody() {},
    responseBody: new TestBody(more.responseBody ?? ""),
    responseSource: "backend",
    maxBufferSize: 2 * 1024 * 1024,
    get variables() {
      const source = { address: "192.0.2.1", port: 4711, rawAddress: "192.0.2.1", rawPort: 4711, ...more.source };
      return {
        ...requestMetadata,
        get metadata() {
          return requestMetadata.metadata;
        },
        request: { ...message, body: body.bytes },
        response: more.response,
        source,
        env: {},
      };
    },
    editResponse: (edit) => edits.push(edit),
    becomeGrpc() {},
    claimField() {},
    claimAllFields() {},
    onClose: (callback) => closed.push(callback),
    onCancel: (callback) => closed.push(callback),
    shadow: { run() {} },
    responseHeaders: () => {
      const headers: string[] = [];
      applyHeaderEdits(edits, headers);
      return headers;
    },
    end: () => {
      for (const callback of closed) callback();
    },
  };
}

class TestBody implements IncomingBody {
  bytes: Uint8Array;

  constructor(text: string) {
    this.bytes = Buffer.from(text);
  }
  async buffer(limit: number): Promise<Uint8Array | undefined> {
    return this.bytes.length <= limit ? this.bytes : undefined;
  }
  tryBuffer(limit: number): Promise<Uint8Array | undefined> {
    return this.buffer(limit);
  }
  get empty(): boolean {
    return this.bytes.length === 0;
  }
  async peek(limit: number): Promise<BodyStart> {
    return { bytes: this.bytes.subarray(0, limit), complete: this.bytes.length <= limit };
  }
  copy(limit: number): Promise<Uint8Array | undefined> {
    return this.buffer(limit);
  }
  through(): void {
    throw new Error("bodies flow through stages in a gateway only");
  }
  replace(bytes: Uint8Array): void {
    this.bytes = bytes;
  }
}

/** Runs a policy that must reply synchronously. */
export function replyOf(policy: CompiledPolicy, context: PolicyContext): LocalReply {
  const outcome = policy.onRequest?.(context);
  if (outcome === undefined || outcome instanceof Promise)
    throw new Error(`${policy.kind} did not respond synchronously`);
  return outcome;
}

/** The error with which a policy ends the request. */
export async function rejectionOf(outcome: Promise<unknown>): Promise<GatewayError> {
  const error: unknown = await outcome.catch((reason: unknown) => reason);
  assert.ok(error instanceof GatewayError);
  return error;
}

/** What the access log says of an error: its message, and the decision behind it. */
export function loggedText({ message, why }: GatewayError): string {
  const told = why?.({ hiddenHeaders: new Set(), input: (_path, value) => value });
  return told === undefined ? message : `${message}: ${told.text}`;
}

/** What the client gets in place of the backend's response, by a reply or by an error whose response a service has written. */
export async function answerOf(policy: CompiledPolicy, context: PolicyContext): Promise<LocalReply | undefined> {
  try {
    return await policy.onRequest?.(context);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.answer.body === undefined) throw error;
    return { ...errorReply(context.request, error.answer), reason: error.reason };
  }
}

/** Records what policies report to a trace. */
export class RecordedTrace implements PolicyTrace {
  readonly events: unknown[];
  readonly #scope: { readonly scope?: string };

  /** `scope`: what the events carry. */
  constructor(scope?: string, events: unknown[] = []) {
    this.events = events;
    this.#scope = scope === undefined ? {} : { scope };
  }

  report<All extends Decision>(decisions: Decisions<All>, decision: All, before?: unknown, after?: unknown): void {
    const { effect, text, data = text } = decisions.tell(decision);
    const severity = { rejected: "error", failed: "warn", unable: "warn", applied: undefined, skipped: undefined }[
      effect
    ];
    this.events.push({
      kind: decisions.kind,
      [effect === "skipped" || effect === "unable" ? "reason" : "details"]: data,
      ...(before !== undefined && { before, after }),
      ...(severity !== undefined && { severity }),
      ...this.#scope,
    });
  }
  authorization(rules: readonly AuthorizationRuleResult[], result: "allow" | "deny"): void {
    const shown = rules.map(({ name, matched, mode, error, inputs }) =>
      defined({ name, matched, mode, error, inputs }),
    );
    this.events.push({ kind: "authorizationResult", rules: shown, result });
  }
  hide(place: "header" | "query parameter", name: string): void {
    this.events.push({ hide: place, name });
  }
  outbound(scope: string): OutboundTrace {
    return {
      started: (target) => this.events.push({ scope, target }),
      ended: (status, error) => this.events.push({ scope, status, error }),
    };
  }
  within(scope: string): PolicyTrace {
    return new RecordedTrace(scope, this.events);
  }
  ofShadow(): PolicyTrace {
    return new RecordedTrace("shadow", this.events);
  }
  shadow(decision: ShadowDecision): void {
    this.events.push({ ...decision, ...this.#scope });
  }
}

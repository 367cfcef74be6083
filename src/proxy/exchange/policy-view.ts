/**
 * What the policies of one exchange see of it, with what they have set and established. It is made for the first policy, because many
 * requests meet none.
 */
import { ms } from "../../base/durations.ts";
import { GatewayError } from "../../base/errors.ts";
import type { HttpRequest, Latin1 } from "../../http/message/message.ts";
import type { Downstream } from "../../http/stream.ts";
import type { HeaderEdit } from "../../policies/contract/header-edits.ts";
import type {
  ContentCoding,
  IncomingBody,
  MessageBody,
  PersistentSession,
  PolicyContext,
  RequestMetadata,
  ResponseSource,
  ResponseTranslation,
  RetryPlan,
} from "../../policies/contract/types.ts";
import { type ShadowHost, ShadowLane } from "../../policies/shadow/lane.ts";
import type { BufferShare } from "../body/buffer-budget.ts";
import type { CompiledBind } from "../compile/compiled.ts";
import type { Deadlines } from "./deadlines.ts";
import type { RequestSide } from "./request-side.ts";
import type { ResponseSide } from "./response-side.ts";
import type { Selection } from "./selection.ts";

/** What policies have set and established, for the phases. */
export interface PolicyState
  extends Readonly<Pick<PolicyContext, "requestTimeout" | "backendRequestTimeout" | "authorityMode" | "retry">> {
  readonly found: RequestMetadata;
  /** What shadow policies would have done; undefined if the request met none. */
  readonly shadowed: ShadowLane | undefined;
}

const NO_METADATA: RequestMetadata = Object.freeze({});

/** The state of a request that has met no policy. */
export const UNTOUCHED: PolicyState = Object.freeze({
  requestTimeout: ms(0),
  backendRequestTimeout: ms(0),
  authorityMode: "auto",
  retry: undefined,
  found: NO_METADATA,
  shadowed: undefined,
});

/** What the view needs of its exchange. */
interface Owner
  extends Pick<PolicyContext, "request" | "loop" | "trace" | "span" | "variables" | "onClose">,
    ShadowHost {
  readonly bind: CompiledBind;
  readonly selected: Selection;
  readonly requestSide: RequestSide;
  readonly responseSide: ResponseSide;
  readonly call: { readonly endpointName: string | undefined } | undefined;
  readonly deadlines: Deadlines;
  readonly downstream: Pick<Downstream, "connection" | "requestLength">;
  readonly bufferShare: BufferShare;
  grpc: "no" | "sent" | "translated";
}

export class PolicyView implements PolicyContext, PolicyState {
  readonly #exchange: Owner;
  readonly request: HttpRequest;
  readonly trace: PolicyContext["trace"];
  requestTimeout = UNTOUCHED.requestTimeout;
  backendRequestTimeout = UNTOUCHED.backendRequestTimeout;
  authorityMode = UNTOUCHED.authorityMode;
  retry: RetryPlan | undefined;
  acceptedCoding: ContentCoding | undefined;
  session: PersistentSession | undefined;
  /** Allocated only once a policy adds something. */
  #metadata: RequestMetadata | undefined;
  #shadow: ShadowLane | undefined;

  constructor(exchange: Owner) {
    this.#exchange = exchange;
    this.request = exchange.request;
    this.trace = exchange.trace;
  }

  get found(): RequestMetadata {
    return this.#metadata ?? NO_METADATA;
  }

  get requestMetadata(): RequestMetadata {
    this.#metadata ??= {};
    return this.#metadata;
  }

  holdMetadata(bytes: number): void {
    if (!this.#exchange.bufferShare.take(bytes)) throw new GatewayError("TG_BUFFERS_FULL");
  }

  get shadow(): ShadowLane {
    this.#shadow ??= new ShadowLane(this, this.#exchange);
    return this.#shadow;
  }

  get shadowed(): ShadowLane | undefined {
    return this.#shadow;
  }

  // ── from the exchange ──

  get loop(): Latin1 {
    return this.#exchange.loop;
  }

  get span(): PolicyContext["span"] {
    return this.#exchange.span;
  }

  get variables(): PolicyContext["variables"] {
    return this.#exchange.variables;
  }

  get matchedPrefix(): string | undefined {
    return this.#exchange.selected.matchedPrefix;
  }

  get matchedPath(): string {
    return this.#exchange.selected.matchedPath;
  }

  preferEndpoint(name: string): boolean {
    return this.#exchange.selected.preferEndpoint(name);
  }

  get calledEndpoint(): string | undefined {
    const { selected, call } = this.#exchange;
    return selected.backend?.balancer === undefined ? undefined : call?.endpointName;
  }

  get maxBufferSize(): number {
    return this.#exchange.bind.frontend.maxBufferSize;
  }

  get requestBody(): IncomingBody {
    return this.#exchange.requestSide.body;
  }

  get clientAddress(): string {
    const { bind, downstream, request } = this.#exchange;
    return bind.forwarding.clientAddress(request, downstream.connection);
  }

  get clientIsReported(): boolean {
    const { bind, downstream } = this.#exchange;
    return bind.forwarding.isReported(downstream.connection);
  }

  get requestLength(): number {
    return this.#exchange.downstream.requestLength;
  }

  limitRequestBody(bytes: number, error: () => GatewayError): void {
    this.#exchange.requestSide.limit(bytes, error);
  }

  get responseBody(): MessageBody {
    return this.#exchange.responseSide.body;
  }

  get responseSource(): ResponseSource {
    return this.#exchange.responseSide.source;
  }

  editResponse(edit: HeaderEdit): void {
    this.#exchange.responseSide.edit(edit);
  }

  becomeGrpc(translate: ResponseTranslation): void {
    const exchange = this.#exchange;
    exchange.grpc = "translated";
    // First, so that the error about a malformed deadline is translated too.
    exchange.responseSide.translate(translate);
    exchange.deadlines.startGrpc();
  }

  claimField(name: string): void {
    this.#exchange.requestSide.claimField(name);
  }

  claimAllFields(): void {
    this.#exchange.requestSide.claimAllFields();
  }

  onClose(callback: () => void): void {
    this.#exchange.onClose(callback);
  }

  onCancel(callback: () => void): void {
    this.#exchange.onClose(callback);
  }
}

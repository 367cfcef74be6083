/** What expressions read of a request and its response. */
import { nameOfKey } from "../../base/object-key.ts";
import type { Names } from "../../base/sensitive-names.ts";
import {
  type Activation,
  Budget,
  CelDuration,
  type EvaluationObserver,
  type RequestParts,
  type ResponseParts,
  type SourceParts,
} from "../../cel/index.ts";
import { grpcStatusIn } from "../../http/grpc-reply.ts";
import type { HeaderList, HttpRequest, HttpResponse } from "../../http/message/message.ts";
import { Source } from "../../http/source.ts";
import type { Downstream } from "../../http/stream.ts";
import type { PolicyEnvironment } from "../../policies/contract/deps.ts";
import type { RequestMetadata } from "../../policies/contract/types.ts";
import type { RecordedBodies } from "../body/recorded-bodies.ts";
import type { CompiledBackend, CompiledBind, CompiledListener, CompiledRoute } from "../compile/compiled.ts";
import type { Services } from "../services/services.ts";

/** What expressions can read of a response. */
interface ReadableResponse {
  /** undefined until the head arrives. */
  readonly head: HttpResponse | undefined;
  readonly heldBytes: Uint8Array | undefined;
  readonly grpcStatus: number | undefined;
}

/** What expressions can read of an exchange. */
interface ReadableExchange {
  readonly request: HttpRequest;
  readonly requestSide: { readonly bytes: Uint8Array | undefined };
  readonly responseSide: ReadableResponse;
  readonly recorded: RecordedBodies | undefined;
  readonly downstream: Downstream;
  readonly bind: CompiledBind;
  readonly selected: {
    readonly listener: CompiledListener | undefined;
    readonly route: CompiledRoute | undefined;
    readonly backend: CompiledBackend | undefined;
  };
  readonly services: Pick<Services, "env" | "workloads" | "sensitive" | "expressions" | "unknowns">;
  readonly trace: { readonly observer: EvaluationObserver | undefined } | undefined;
  readonly policyState: { readonly found: RequestMetadata };
  /** `performance.now()` ms; 0 = not yet. */
  readonly startedAt: number;
  readonly call: { readonly startedAt: number; readonly answeredAt: number } | undefined;
  readonly result: { readonly endedAt: number };
}

/**
 * The variables of expressions (docs/expressions.md#variables) over one exchange. Values are read when an expression asks for
 * them: most expressions read one or two, and headers, certificates and bodies cost something to convert.
 */
export class ExchangeVariables implements Activation {
  readonly #exchange: ReadableExchange;
  readonly request: RequestParts;
  readonly #shownResponse: ReadableResponse;
  #response: ResponseParts | undefined;
  #budget: Budget | undefined;
  #telemetryBudget: Budget | undefined;
  /** The budget is accounted to the route. */
  #routed = false;

  /** `response`: the one that expressions read. */
  constructor(exchange: ReadableExchange, response: ReadableResponse = exchange.responseSide) {
    this.#exchange = exchange;
    this.#shownResponse = response;
    this.request = new RequestVariable(exchange);
  }

  /** The same variables and budget with another response, which has no body. */
  withResponse(head: HttpResponse, trailers: HeaderList): Activation {
    const grpcStatus = grpcStatusIn(head.headers) ?? grpcStatusIn(trailers);
    const variables = new ExchangeVariables(this.#exchange, { head, heldBytes: undefined, grpcStatus });
    variables.#budget = this.budget;
    variables.#routed = this.#routed;
    return variables;
  }

  get observer(): Activation["observer"] {
    return this.#exchange.trace?.observer;
  }

  get unknowns(): Activation["unknowns"] {
    return this.#exchange.services.unknowns;
  }

  /** Telemetry has a separate budget: the log needs its fields even if the policies have used up theirs. */
  get budget(): Budget {
    if (this.#exchange.result.endedAt !== 0) {
      this.#telemetryBudget ??= this.#newBudget();
      return this.#telemetryBudget;
    }
    this.#budget ??= this.#newBudget();
    // Steps that policies of the gateway use before the route is known are not charged to the route.
    if (!this.#routed && this.#exchange.selected.route !== undefined) this.#account(this.#budget);
    return this.#budget;
  }

  #newBudget(): Budget {
    const budget = new Budget(this.#exchange.services.expressions.limits.perRequest);
    this.#account(budget);
    return budget;
  }

  #account(budget: Budget): void {
    const { selected, services } = this.#exchange;
    this.#routed = selected.route !== undefined;
    budget.account = services.expressions.of(selected.route?.label);
  }

  get response(): ResponseParts | undefined {
    if (this.#shownResponse.head === undefined) return undefined;
    this.#response ??= new ResponseVariable(this.#exchange, this.#shownResponse);
    return this.#response;
  }
  get source(): SourceParts {
    return new Source(this.#exchange.downstream.connection, this.#exchange.services.workloads);
  }
  get destination(): Activation["destination"] {
    const { localAddress, localPort, tls } = this.#exchange.downstream.connection;
    return { address: localAddress, port: localPort, hostname: tls?.serverName };
  }
  get proxy(): unknown {
    const { bind, selected, startedAt, call, result } = this.#exchange;
    const { listener, route } = selected;
    const { startedAt: calledAt = 0, answeredAt = 0 } = call ?? {};
    const { endedAt } = result;
    return {
      bind: bind.key,
      ...(listener !== undefined && { gateway: nameOfKey(listener.gateway), listener: { name: listener.name } }),
      ...(route !== undefined && {
        route: { ...nameOfKey(route.label), kind: "HTTPRoute", ...definedRule(route) },
      }),
      ...(calledAt !== 0 && { requestProcessingDuration: duration(calledAt - startedAt) }),
      ...(answeredAt !== 0 && { upstreamDuration: duration(answeredAt - calledAt) }),
      ...(answeredAt !== 0 && endedAt !== 0 && { responseProcessingDuration: duration(endedAt - answeredAt) }),
    };
  }
  get env(): unknown {
    return this.#exchange.services.env;
  }
  get backend(): unknown {
    const { backend } = this.#exchange.selected;
    return backend && { name: backend.key, type: backend.target.type, protocol: "http" };
  }
  get jwt(): unknown {
    return this.#exchange.policyState.found.jwt;
  }
  get apiKey(): unknown {
    return this.#exchange.policyState.found.apiKey;
  }
  get basicAuth(): unknown {
    return this.#exchange.policyState.found.basicAuth;
  }
  get extauthz(): unknown {
    return this.#exchange.policyState.found.extauthz;
  }
  get extproc(): unknown {
    return this.#exchange.policyState.found.extproc;
  }
  get metadata(): unknown {
    return this.#exchange.policyState.found.metadata;
  }
}

/** Knows which values of an exchange are secrets. */
interface Guarded {
  readonly services: Pick<Services, "sensitive">;
  readonly bind: { readonly policies: Pick<PolicyEnvironment, "credentials"> };
}

/** The headers that are configured as secrets, and those in which policies look for credentials. */
export function sensitiveNames({ services, bind }: Guarded): Names {
  return { has: (name) => services.sensitive.has(name) || bind.policies.credentials.headers.has(name) };
}

const duration = CelDuration.fromMilliseconds;

function definedRule({ rule }: CompiledRoute): { readonly rule?: string } {
  return rule === undefined ? {} : { rule };
}

class RequestVariable implements RequestParts {
  readonly #exchange: ReadableExchange;

  constructor(exchange: ReadableExchange) {
    this.#exchange = exchange;
  }
  get method(): string {
    return this.#exchange.request.method;
  }
  get scheme(): string {
    return this.#exchange.request.scheme;
  }
  get authority(): string {
    return this.#exchange.request.authority;
  }
  get path(): string {
    return this.#exchange.request.path;
  }
  get search(): string {
    return this.#exchange.request.search;
  }
  get version(): string {
    return this.#exchange.request.version;
  }
  get headers(): readonly string[] {
    return this.#exchange.request.headers;
  }
  get sensitive(): Names {
    return sensitiveNames(this.#exchange);
  }
  get body(): Uint8Array | undefined {
    const { recorded, result, requestSide } = this.#exchange;
    // Until the end, a body has a value only if a policy has read all of it; recorded beginnings are for telemetry.
    return (result.endedAt === 0 ? undefined : recorded?.request?.bytes) ?? requestSide.bytes;
  }
  get startTime(): Date {
    return new Date(performance.timeOrigin + this.#exchange.startedAt);
  }
  get endTime(): Date | undefined {
    const { endedAt } = this.#exchange.result;
    return endedAt === 0 ? undefined : new Date(performance.timeOrigin + endedAt);
  }
}

class ResponseVariable implements ResponseParts {
  readonly #exchange: ReadableExchange;
  readonly #response: ReadableResponse;

  constructor(exchange: ReadableExchange, response: ReadableResponse) {
    this.#exchange = exchange;
    this.#response = response;
  }
  get status(): number {
    return this.#response.head?.status ?? 0;
  }
  get headers(): readonly string[] {
    return this.#response.head?.headers ?? [];
  }
  get sensitive(): Names {
    return sensitiveNames(this.#exchange);
  }
  get body(): Uint8Array | undefined {
    const { recorded, result } = this.#exchange;
    return (result.endedAt === 0 ? undefined : recorded?.response?.bytes) ?? this.#response.heldBytes;
  }
  get grpcStatus(): number | undefined {
    return this.#response.grpcStatus;
  }
}

import {
  type Activation,
  Budget,
  CelDuration,
  type RequestParts,
  type ResponseParts,
  type SourceParts,
} from "../cel/index.ts";
import type { HttpRequest, HttpResponse } from "../http/message.ts";
import { Source } from "../http/source.ts";
import type { Downstream } from "../http/stream.ts";
import type { Findings } from "../policies/types.ts";
import type { RecordedBodies } from "./body/recorded-bodies.ts";
import type { CompiledBackend, CompiledBind, CompiledListener, CompiledRoute } from "./compiled.ts";
import type { Services } from "./services.ts";

/** What expressions can read of an exchange. */
interface ReadableExchange {
  readonly request: HttpRequest;
  readonly requestBytes: Uint8Array | undefined;
  readonly response: HttpResponse | undefined;
  readonly heldResponse: { readonly bytes: Uint8Array | undefined } | undefined;
  readonly grpcStatus: number | undefined;
  readonly recorded: RecordedBodies | undefined;
  readonly downstream: Downstream;
  readonly bind: CompiledBind;
  readonly listener: CompiledListener | undefined;
  readonly route: CompiledRoute | undefined;
  readonly backend: CompiledBackend | undefined;
  readonly services: Pick<Services, "env" | "workloads" | "sensitive">;
  readonly findings: Findings;
  /** `performance.now()` ms; 0 = not yet. */
  readonly startedAt: number;
  readonly calledAt: number;
  readonly answeredAt: number;
  readonly endedAt: number;
}

/** What expressions read of one exchange; everything is looked up when an expression asks for it. */
export class ExchangeVariables implements Activation {
  readonly #x: ReadableExchange;
  readonly request: RequestParts;
  #response: ResponseParts | undefined;
  #budget: Budget | undefined;
  #telemetryBudget: Budget | undefined;

  constructor(x: ReadableExchange) {
    this.#x = x;
    this.request = new RequestVariable(x);
  }

  /** Telemetry has a budget of its own: the log must have its fields also where the policies have used up theirs. */
  get budget(): Budget {
    if (this.#x.endedAt !== 0) {
      this.#telemetryBudget ??= new Budget();
      return this.#telemetryBudget;
    }
    this.#budget ??= new Budget();
    return this.#budget;
  }
  get response(): ResponseParts | undefined {
    if (this.#x.response === undefined) return undefined;
    this.#response ??= new ResponseVariable(this.#x);
    return this.#response;
  }
  get source(): SourceParts {
    return new Source(this.#x.downstream, this.#x.services.workloads);
  }
  get destination(): Activation["destination"] {
    const { localAddress, localPort, tls } = this.#x.downstream;
    return { address: localAddress, port: localPort, hostname: tls?.serverName };
  }
  get proxy(): unknown {
    const { bind, listener, route, startedAt, calledAt, answeredAt, endedAt } = this.#x;
    const [namespace, name] = listener?.gateway.split("/") ?? [];
    const [routeNamespace, routeName] = route?.label.split("/") ?? [];
    return {
      bind: bind.key,
      ...(listener !== undefined && { gateway: { namespace, name }, listener: { name: listener.name } }),
      ...(route !== undefined && {
        route: { namespace: routeNamespace, name: routeName, kind: "HTTPRoute", ...definedRule(route) },
      }),
      ...(calledAt !== 0 && { requestProcessingDuration: duration(calledAt - startedAt) }),
      ...(answeredAt !== 0 && { upstreamDuration: duration(answeredAt - calledAt) }),
      ...(answeredAt !== 0 && endedAt !== 0 && { responseProcessingDuration: duration(endedAt - answeredAt) }),
    };
  }
  get env(): unknown {
    return this.#x.services.env;
  }
  get backend(): unknown {
    const { backend } = this.#x;
    return backend && { name: backend.key, type: backend.target.type, protocol: "http" };
  }
  get jwt(): unknown {
    return this.#x.findings.jwt;
  }
  get apiKey(): unknown {
    return this.#x.findings.apiKey;
  }
  get basicAuth(): unknown {
    return this.#x.findings.basicAuth;
  }
  get extauthz(): unknown {
    return this.#x.findings.extauthz;
  }
  get extproc(): unknown {
    return this.#x.findings.extproc;
  }
  get metadata(): unknown {
    return this.#x.findings.metadata;
  }
}

type SensitiveNames = Pick<ReadonlySet<string>, "has">;

/** The headers that are configured as secrets, and those in which policies look for credentials. */
function sensitiveNames({ services, bind }: ReadableExchange): SensitiveNames {
  return { has: (name) => services.sensitive.has(name) || bind.policies.credentials.headers.has(name) };
}

const duration = CelDuration.fromMilliseconds;

function definedRule({ rule }: CompiledRoute): { readonly rule?: string } {
  return rule === undefined ? {} : { rule };
}

class RequestVariable implements RequestParts {
  readonly #x: ReadableExchange;

  constructor(x: ReadableExchange) {
    this.#x = x;
  }
  get method(): string {
    return this.#x.request.method;
  }
  get scheme(): string {
    return this.#x.request.scheme;
  }
  get authority(): string {
    return this.#x.request.authority;
  }
  get path(): string {
    return this.#x.request.path;
  }
  get search(): string {
    return this.#x.request.search;
  }
  get version(): string {
    return this.#x.request.version;
  }
  get headers(): readonly string[] {
    return this.#x.request.headers;
  }
  get sensitive(): SensitiveNames {
    return sensitiveNames(this.#x);
  }
  get body(): Uint8Array | undefined {
    const { recorded, endedAt, requestBytes } = this.#x;
    // Until then it is there for those who have read it to its end alone.
    return (endedAt === 0 ? undefined : recorded?.request?.bytes) ?? requestBytes;
  }
  get startTime(): Date {
    return new Date(performance.timeOrigin + this.#x.startedAt);
  }
  get endTime(): Date | undefined {
    const { endedAt } = this.#x;
    return endedAt === 0 ? undefined : new Date(performance.timeOrigin + endedAt);
  }
}

class ResponseVariable implements ResponseParts {
  readonly #x: ReadableExchange;

  constructor(x: ReadableExchange) {
    this.#x = x;
  }
  get status(): number {
    return this.#x.response?.status ?? 0;
  }
  get headers(): readonly string[] {
    return this.#x.response?.headers ?? [];
  }
  get sensitive(): SensitiveNames {
    return sensitiveNames(this.#x);
  }
  get body(): Uint8Array | undefined {
    const { recorded, endedAt, heldResponse } = this.#x;
    return (endedAt === 0 ? undefined : recorded?.response?.bytes) ?? heldResponse?.bytes;
  }
  get grpcStatus(): number | undefined {
    return this.#x.grpcStatus;
  }
}

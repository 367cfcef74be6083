import { GatewayError } from "../base/errors.ts";
import type { CalloutAnswers } from "../upstream/callouts/callout.ts";
import type { GrpcStream, GrpcStreamEvents } from "../upstream/callouts/grpc-call.ts";
import type { CallResponse } from "../upstream/callouts/http-call.ts";
import { AssumedProcessor, authzHttp, authzMessage, httpOf, rateLimitMessage } from "./assumed-services.ts";
import type { AssumedResponse, AssumptionName, Assumptions } from "./assumptions.ts";

/** The services that decide about requests or connections, by what calls are for. */
const AUTHORIZERS: Readonly<Record<string, "extAuthz" | "networkExtAuthz">> = {
  ext_authz: "extAuthz",
  network_ext_authz: "networkExtAuthz",
};

/** What an outcome was given, by name: what was assumed, and what was chosen because the facts leave it open. */
export type Given = Readonly<Record<string, unknown>>;

/** One decision that the facts leave open. */
interface Asked {
  readonly value: unknown;
  readonly others: readonly unknown[];
  /** Share of requests that get the value, by the weights of backends; 1 for services. */
  readonly share: (value: unknown) => number;
}

/** For callouts whose response no policy decides by: mirrors ignore it, and `backendAuth` takes a token from it. */
const TOKEN: AssumedResponse = {
  headers: { "content-type": "application/json" },
  body: '{"access_token":"assumed","token_type":"Bearer","expires_in":3600}',
};

/** Decides in place of services and chance, and notes on what the outcome depends. */
export class Choices implements CalloutAnswers {
  #given: Given = {};
  /** What this run was asked, in order. */
  readonly asked = new Map<string, Asked>();

  begin(given: Given): void {
    this.#given = given;
    this.asked.clear();
  }

  http(scope: string | undefined): CallResponse {
    const service = AUTHORIZERS[scope ?? ""];
    return service === undefined ? httpOf(TOKEN) : authzHttp(this.#choose(service, ["allow", "deny"]));
  }

  unary(scope: string | undefined): Uint8Array | undefined {
    const service = AUTHORIZERS[scope ?? ""];
    if (service !== undefined) return authzMessage(this.#choose(service, ["allow", "deny"]));
    return scope === "rate_limit" ? rateLimitMessage(this.#choose("remoteRateLimit", ["under", "over"])) : undefined;
  }

  /** Only processing services are called by streams. */
  stream(events: GrpcStreamEvents): GrpcStream {
    const value = this.#choose("extProc", ["allow", "fail"]);
    if (value === "fail")
      throw new GatewayError("TG_UPSTREAM_FAILED", undefined, new Error("the service is assumed to fail"));
    return new AssumedProcessor(value, events);
  }

  /** What the backend responds; asked for each request that reaches it. */
  response(): AssumedResponse {
    const given = this.#given as Assumptions;
    if (given.response !== undefined) this.#choose("response", []);
    return given.response ?? {};
  }

  /** The index of the backend that a request goes to. */
  readonly backend = (backends: readonly { readonly key: string; readonly weight: number }[]): number => {
    const used = backends.filter(({ weight }) => weight > 0);
    const total = used.reduce((sum, { weight }) => sum + weight, 0);
    const share = (value: unknown): number => (used.find(({ key }) => key === value)?.weight ?? 0) / total;
    const keys = used.map(({ key }) => key);
    const value = keys.length > 1 ? this.#choose("backend", keys, share) : keys[0];
    return backends.findIndex(({ key, weight }) => key === value && weight > 0);
  };

  /** The value of a choice: the one that is given, else the first; an assumption can be any other value. */
  #choose<Name extends AssumptionName>(
    name: Name,
    values: readonly NonNullable<Assumptions[Name]>[],
    share: Asked["share"] = () => 1,
  ): NonNullable<Assumptions[Name]> {
    const given = (this.#given as Assumptions)[name];
    const value = given ?? (values[0] as NonNullable<Assumptions[Name]>);
    this.asked.set(name, { value, others: values.filter((other) => other !== value), share });
    return value;
  }
}

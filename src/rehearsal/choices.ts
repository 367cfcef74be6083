import { GatewayError } from "../base/errors.ts";
import { REDACTED } from "../base/redaction.ts";
import type { Need } from "../cel/index.ts";
import { getHeader } from "../http/message/message.ts";
import type { AssumeCredential } from "../policies/contract/deps.ts";
import type { CalloutAnswers } from "../upstream/callouts/callout.ts";
import type { GrpcStream, GrpcStreamEvents } from "../upstream/callouts/grpc-call.ts";
import type { CalloutResponse } from "../upstream/callouts/http-call.ts";
import { AssumedProcessor, authzHttp, authzMessage, httpOf, rateLimitMessage } from "./assumed-services.ts";
import { type AssumedResponse, type AssumptionName, type Assumptions, CONDITION } from "./assumptions.ts";

/** The services that decide about requests or connections, by what calls are for. */
const AUTHORIZERS: Readonly<Record<string, "extAuthz" | "networkExtAuthz">> = {
  ext_authz: "extAuthz",
  network_ext_authz: "networkExtAuthz",
};

/** What an outcome was given, by name: what was assumed, and what was chosen because the facts leave it open. */
export type Given = Readonly<Record<string, unknown>>;

export type CredentialKind = Parameters<AssumeCredential>[0];

/** Something that is not known, though the outcome depends on it. */
export interface Lack extends Need {
  /** The choice in `given` that is made because of it; absent if only a value depends on it. */
  readonly choice?: string;
}

/** One decision that the facts leave open. */
export interface Asked {
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
  /** What is not known in this run, though something depends on it; by what depends on it, and what it is. */
  readonly needs = new Map<string, Lack>();

  /** The credentials that are only known to be valid, by the variable that has what they say about the client. */
  readonly unknownClients = new Map<string, CredentialKind>();

  begin(given: Given): void {
    this.#given = given;
    this.asked.clear();
    this.needs.clear();
    this.unknownClients.clear();
  }

  /** What is assumed about a fact that is asked for now; undefined: nothing. */
  assumed<Name extends AssumptionName>(name: Name): Assumptions[Name] {
    const value = (this.#given as Assumptions)[name];
    if (value !== undefined) this.asked.set(name, { value, others: [], share: () => 1 });
    return value;
  }

  /** Whether a condition is met that depends on what is not known. */
  condition(text: string, needs: readonly Need[]): boolean {
    const name = `${CONDITION}${text}`;
    this.lacks(needs, name);
    const value = this.#given[name] !== false;
    this.asked.set(name, { value, others: [!value], share: () => 1 });
    return value;
  }

  /** `choice`: the one that is made because of it; undefined: a value is made from what the request has. */
  lacks(needs: readonly Need[], choice?: string): void {
    for (const need of needs)
      this.needs.set(JSON.stringify([choice, need.what]), { ...need, ...(choice !== undefined && { choice }) });
  }

  http(scope: string | undefined): CalloutResponse {
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

  /** A credential that is redacted is a choice; one that is assumed is taken for that, whatever the request has. */
  readonly credential: AssumeCredential = (kind, presented, headers) => {
    const text = presented ?? getHeader(headers, kind === "oidc" ? "cookie" : "authorization") ?? "";
    const { [kind]: given } = this.#given as Assumptions;
    if (given === undefined && !text.includes(REDACTED)) return undefined;
    const value = this.#choose(kind, ["valid", "invalid"]);
    if (value !== "valid") return value;
    this.unknownClients.set(kind === "oidc" ? "jwt" : kind, kind);
    return {};
  };

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

import type { CalloutAnswers } from "../upstream/callouts/callout.ts";
import type { CallResponse } from "../upstream/callouts/http-call.ts";

/** What services respond, by the name under which it can be assumed; the first value is tried first. */
export const SERVICES = {
  networkExtAuthz: ["allow", "deny"],
  extAuthz: ["allow", "deny"],
  remoteRateLimit: ["under", "over"],
} as const;

type Service = keyof typeof SERVICES;

/** The services that decide about requests or connections, by what calls are for. */
const AUTHORIZERS: Readonly<Record<string, Service>> = { ext_authz: "extAuthz", network_ext_authz: "networkExtAuthz" };

/** Choice → value. `backend`, of a route with several, takes the key of one. */
export type Given = Readonly<Record<string, string>>;

/** One decision that the facts leave open. */
export interface Asked {
  readonly value: string;
  readonly others: readonly string[];
  /** Share of requests that get the value, by the weights of backends; 1 for services. */
  readonly share: (value: string) => number;
}

/** CheckResponse.status (1) of Envoy's API: google.rpc.Status with code (1), 7 = PERMISSION_DENIED. */
const CHECK: Readonly<Record<string, Uint8Array>> = {
  allow: Uint8Array.of(0x0a, 0),
  deny: Uint8Array.of(0x0a, 2, 0x08, 7),
};
/** RateLimitResponse.overall_code (1): 1 = OK, 2 = OVER_LIMIT. */
const LIMIT: Readonly<Record<string, Uint8Array>> = { under: Uint8Array.of(0x08, 1), over: Uint8Array.of(0x08, 2) };
/** For callouts whose response no policy decides by: mirrors ignore it, and `backendAuth` takes a token from it. */
const TOKEN = Buffer.from('{"access_token":"assumed","token_type":"Bearer","expires_in":3600}');

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
    if (service === undefined) return { status: 200, headers: ["content-type", "application/json"], body: TOKEN };
    return { status: this.#service(service) === "deny" ? 403 : 200, headers: [], body: new Uint8Array() };
  }

  unary(scope: string | undefined): Uint8Array | undefined {
    const service = AUTHORIZERS[scope ?? ""];
    if (service !== undefined) return CHECK[this.#service(service)];
    return scope === "rate_limit" ? LIMIT[this.#service("remoteRateLimit")] : undefined;
  }

  /** The index of the backend that a request goes to. */
  readonly backend = (backends: readonly { readonly key: string; readonly weight: number }[]): number => {
    const used = backends.filter(({ weight }) => weight > 0);
    const total = used.reduce((sum, { weight }) => sum + weight, 0);
    const share = (value: string): number => (used.find(({ key }) => key === value)?.weight ?? 0) / total;
    const keys = used.map(({ key }) => key);
    const value = keys.length > 1 ? this.#choose("backend", keys, share) : keys[0];
    return backends.findIndex(({ key, weight }) => key === value && weight > 0);
  };

  #service(name: Service): string {
    return this.#choose(name, SERVICES[name], () => 1);
  }

  #choose(name: string, values: readonly string[], share: Asked["share"]): string {
    const given = this.#given[name];
    const value = given !== undefined && values.includes(given) ? given : (values[0] ?? "");
    this.asked.set(name, { value, others: values.filter((other) => other !== value), share });
    return value;
  }
}

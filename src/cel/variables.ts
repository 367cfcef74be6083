import type { ObjectSchema } from "@marcbachmann/cel-js";

/**
 * What an expression can name: `arrival` knows only the request's head, as when a trace chooses its request; `exchange` also
 * what the gateway learns afterwards. A name out of scope is an error when the expression is compiled.
 */
export type Scope = "arrival" | "exchange";

const TIMESTAMP = "google.protobuf.Timestamp";
const DURATION = "google.protobuf.Duration";

/** Fields of `request`, as HttpRequestView serves them (reference 4.7). */
export const REQUEST_FIELDS: Readonly<Record<string, string>> = {
  method: "string",
  uri: "string",
  host: "string",
  scheme: "string",
  path: "string",
  pathAndQuery: "string",
  version: "string",
  headers: "map<string, string>",
  startTime: TIMESTAMP,
};

const ADDRESSES = { address: "string", port: "int", rawAddress: "string", rawPort: "int" } as const;

/** The variables of scope `exchange` besides `request` (reference 4.7). */
export const EXCHANGE_VARIABLES: Readonly<Record<string, ObjectSchema>> = {
  response: { code: "int", headers: "map<string, string>" },
  source: ADDRESSES,
  destination: { address: "string", port: "int", hostname: "string" },
  env: { podName: "string", namespace: "string", gateway: "string" },
  backend: { name: "string", type: "string", protocol: "string" },
  proxy: {
    bind: "string",
    gateway: { namespace: "string", name: "string" },
    listener: { name: "string" },
    route: { namespace: "string", name: "string", kind: "string", rule: "string" },
    requestProcessingDuration: DURATION,
    upstreamDuration: DURATION,
    responseProcessingDuration: DURATION,
  },
};

export function variableNames(scope: Scope): readonly string[] {
  return scope === "arrival" ? ["request"] : ["request", ...Object.keys(EXCHANGE_VARIABLES)];
}

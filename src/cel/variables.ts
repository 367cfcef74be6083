import type { ObjectSchema } from "@marcbachmann/cel-js";

/**
 * What an expression can name: `arrival` the request alone, as when a trace chooses its request; `network` what is known of a
 * connection; `request` both and what the policies before it found; `response` all of that and the response. A name out of
 * scope is an error when the expression is compiled.
 */
export type Scope = "arrival" | "network" | "request" | "response";

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
  body: "bytes",
  bodyPrefix: "bytes",
  endTime: TIMESTAMP,
  startTime: TIMESTAMP,
};

const ADDRESSES = { address: "string", port: "int", rawAddress: "string", rawPort: "int" } as const;

/** The variables of scope `exchange` besides `request` (reference 4.7). */
export const EXCHANGE_VARIABLES: Readonly<Record<string, ObjectSchema>> = {
  response: { code: "int", grpcStatus: "int", headers: "map<string, string>", body: "bytes", bodyPrefix: "bytes" },
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
  return VARIABLES[scope];
}

const NETWORK = ["source", "destination", "env"] as const;
const OPEN = ["jwt", "apiKey", "basicAuth", "extauthz", "extproc", "metadata"] as const;
const REQUEST = ["request", ...NETWORK, "proxy", "backend", ...OPEN] as const;
export const VARIABLES: Readonly<Record<Scope, readonly string[]>> = {
  arrival: ["request"],
  network: NETWORK,
  request: REQUEST,
  response: [...REQUEST, "response"],
};

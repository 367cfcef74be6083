import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { formerTracing as schema } from "../../translation/schema/telemetry.ts";
import { ConfigSet } from "../parse/config-set.ts";
import { formerTracing } from "./former-tracing.ts";

type Env = Readonly<Record<string, string>>;

function read(env: Env, configured?: object) {
  const document = new ConfigSet(
    [{ name: "f.yaml", text: configured === undefined ? "{}" : "config: {tracing: {}}" }],
    {},
  );
  const input = configured === undefined ? undefined : schema.parse(configured);
  const found = formerTracing(input, env, document, STANDARD_ENVIRONMENT);
  return { found, problems: document.diagnostics.filter(({ severity }) => severity === "error") };
}

/** Where exports go: protocol, host, path, and the policies of the calls. */
function placeOf(env: Env, configured?: object): unknown {
  const { found, problems } = read(env, configured);
  assert.deepEqual(problems, []);
  if (found === undefined) return undefined;
  const { protocol, host, path, policies = {} } = found;
  return [protocol, host, path, policies.backendTLS !== undefined, policies.requestHeaderModifier?.set];
}

test("without a collector there is no tracing", () => {
  assert.equal(placeOf({}), undefined);
  assert.equal(placeOf({ OTLP_HEADERS: "a=b", OTLP_ENDPOINT: "" }), undefined);
});

test("endpoints: URLs, and host:port", () => {
  const cases: readonly (readonly [string, string, boolean, string])[] = [
    ["collector:4317", "collector:4317", false, "/v1/traces"],
    ["http://collector", "collector:80", false, "/v1/traces"],
    ["https://collector/", "collector:443", true, "/v1/traces"],
    ["https://[::1]:4318/otlp", "[::1]:4318", true, "/otlp"],
  ];
  for (const [endpoint, host, secure, path] of cases)
    assert.deepEqual(placeOf({ OTLP_ENDPOINT: endpoint }), ["grpc", host, path, secure, undefined], endpoint);
});

test("the most specific variable wins; all win over the configuration", () => {
  const all = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://all:1/base",
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    OTEL_EXPORTER_OTLP_HEADERS: "key=all",
  };
  const traces = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://traces:2/here",
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf",
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "key=traces",
  };
  const own = { OTLP_ENDPOINT: "http://own:3", OTLP_PROTOCOL: "grpc", OTLP_HEADERS: "Key = own%20one , b=2=3" };
  const configured = { otlpEndpoint: "http://file:4", otlpProtocol: "http", headers: { key: "file" }, path: "/p" };
  assert.deepEqual(placeOf(all), ["grpc", "all:1", "/base/v1/traces", false, { key: "all" }]);
  assert.deepEqual(placeOf({ ...all, ...traces }), ["http", "traces:2", "/here", false, { key: "traces" }]);
  const set = { key: "own one", b: "2=3" };
  assert.deepEqual(placeOf({ ...all, ...traces, ...own }), ["grpc", "own:3", "/v1/traces", false, set]);
  assert.deepEqual(placeOf({}, configured), ["http", "file:4", "/p", false, { key: "file" }]);
  assert.deepEqual(placeOf(all, configured), ["grpc", "all:1", "/p", false, { key: "all" }]);
});

test("an invalid value is reported with the name of its variable, without the value", () => {
  const endpoint = { OTLP_ENDPOINT: "collector:1" };
  const told = (env: Env): unknown => read(env).problems.map(({ message, expected }) => [message, expected]);
  assert.deepEqual(told({ OTLP_ENDPOINT: "ftp://secret" }), [
    ["environment variable OTLP_ENDPOINT is not valid", "http://host:port, https://host:port or host:port"],
  ]);
  assert.deepEqual(told({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }), [
    [
      "environment variable OTEL_EXPORTER_OTLP_PROTOCOL is not valid",
      "grpc or http/protobuf; http/json is not available",
    ],
  ]);
  for (const headers of ["secret", "a=%zz", "a=1,,b=2"])
    assert.deepEqual(told({ ...endpoint, OTLP_HEADERS: headers }), [
      [
        "environment variable OTLP_HEADERS is not valid",
        "name=value pairs with commas between, such as api-key=secret",
      ],
    ]);
});

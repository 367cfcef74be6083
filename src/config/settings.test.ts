import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { appRoot } from "../base/app-root.ts";
import { settings } from "../translation/schema/settings.ts";
import { loadConfig } from "./load.ts";
import { restartRequired, type Settings, writtenStartOnly } from "./settings.ts";

/** A value other than the default for each field of `config` that is read at the start only. */
const OTHER = {
  enableIpv6: false,
  dns: { lookupFamily: "V6Only", denyDomains: ["cluster.local"], denyNetworks: ["10.0.0.0/8"] },
  admin: { reveal: false, quit: false, browserOrigins: [] },
  ui: { enabled: false },
  adminAddr: "127.0.0.1:1",
  statsAddr: "127.0.0.1:2",
  readinessAddr: "127.0.0.1:3",
  workerThreads: 77,
  connectionTerminationDeadline: "77s",
  connectionMinTerminationDeadline: "7s",
  logging: { level: "debug", format: "json", reasons: "code", output: { file: "access.log" } },
  metrics: { remove: ["retries"], fields: { add: { label: "request.path" } } },
  backend: {
    connectTimeout: "7s",
    poolIdleTimeout: "7s",
    poolMaxSize: 7,
    keepalives: { enabled: false },
    unixFolder: "/run",
  },
  expressions: { perRequest: "2ms", routeShare: 0.5 },
  overload: { maxEventLoopLag: "7s", heapShare: 0.7, memoryShare: 0.7, memoryLimit: 70_000_000 },
  recorder: { clientAddress: true, off: true, recent: 1_048_576, kept: 1_048_576, samples: 0 },
  locality: { region: "r", zone: "z", subzone: "s" },
  clusterId: "c",
  network: "n",
  sensitiveHeaders: ["x-secret"],
  xdsAddress: "http://controller:9978",
  xdsRootCa: "/ca.crt",
  xdsAuthToken: "/token",
  namespace: "apps",
  gateway: "web",
};

/** Fields that a reload changes, that mean nothing, or that can have one value only. */
const OTHERS = [
  "customFunctions",
  "reload.impact",
  "tracing",
  "logging.filter",
  "logging.fields",
  "histograms",
  "dns.edns0",
];

function settingsOf(config: object): Settings {
  const loaded = loadConfig({ kind: "text", text: JSON.stringify({ config }) }, {});
  assert.ok(loaded.ok, JSON.stringify(loaded));
  return loaded.config;
}

/** `a.b` for each field; objects that are one setting each are not gone into. */
function fieldsOf(schema: unknown, depth = 0): string[] {
  const { properties } = schema as { properties?: Record<string, unknown> };
  return Object.entries(properties ?? {}).flatMap(([name, each]) => {
    const inner = depth === 0 && name !== "tracing" ? fieldsOf(each, 1) : [];
    return inner.length > 0 ? inner.map((one) => `${name}.${one}`) : [name];
  });
}

test("each field of `config` is listed as read only at the start, or as reloadable", () => {
  const all = fieldsOf(z.toJSONSchema(settings, { io: "input", unrepresentable: "any" }));
  const startOnly = writtenStartOnly({ config: OTHER }).map((name) => name.replace(/^config\./, ""));
  assert.deepEqual(startOnly.concat(OTHERS).toSorted(), all.toSorted());
});

test("a change of each of them is detected, and no other change", () => {
  assert.deepEqual(restartRequired(settingsOf({}), settingsOf({})), []);
  assert.deepEqual(restartRequired(settingsOf({}), settingsOf(OTHER)), writtenStartOnly({ config: OTHER }));
  const reloaded = { customFunctions: "f(a) { a }" };
  assert.deepEqual(restartRequired(settingsOf({}), settingsOf(reloaded)), []);
});

test("only fields that are written count", () => {
  assert.deepEqual(writtenStartOnly({}), []);
  assert.deepEqual(writtenStartOnly({ config: { customFunctions: "", logging: { level: "info" } } }), [
    "config.logging.level",
  ]);
});

test("pages of the backend behind the quickstart, which serves on an origin that is admitted by default, are not admitted", () => {
  const loaded = loadConfig({ kind: "files", paths: [`${appRoot}examples/quickstart.yaml`] }, {});
  assert.ok(loaded.ok);
  assert.ok(settingsOf({}).admin.browserOrigins.includes("http://localhost:3000"));
  assert.deepEqual(loaded.config.admin.browserOrigins, []);
});

test("the environment says whether the proxy is that of one Gateway or of a class, which takes precedence", () => {
  const xds = (env: Readonly<Record<string, string>>) => {
    const loaded = loadConfig({ kind: "text", text: "{}" }, { XDS_ADDRESS: "http://c:1", NAMESPACE: "apps", ...env });
    return loaded.ok ? loaded.config.xds : undefined;
  };
  const at = { address: "http://c:1", namespace: "apps" };
  assert.deepEqual(xds({ GATEWAY: "web" }), { ...at, gateway: "web" });
  assert.deepEqual(xds({ GATEWAY_CLASS: "shared" }), { ...at, gatewayClass: "shared" });
  assert.deepEqual(xds({ GATEWAY: "web", GATEWAY_CLASS: "shared" }), { ...at, gatewayClass: "shared" });
  assert.equal(xds({}), undefined);
});

/** One request has a marker in each place that can hold a secret, and no output of the gateway may show it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { exportJWK, generateKeyPair } from "jose";
import type { Fields } from "../../../src/base/fields.ts";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import { traceFileText } from "../../../src/report/trace-file.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { TestCollector } from "../../helpers/otlp/collector.ts";
import { call, traceOf, Upstream } from "../trace/support.ts";

const MARKER = "m4rk3r";
const PATH = `/in;jsessionid=${MARKER}-path?page=2&token=${MARKER}-match&Access%5FToken=${MARKER}-query&code=${MARKER}-code&next=http%3A%2F%2Fb%2F%3Fsecret%3D${MARKER}-nested`;
const HEADERS = {
  authorization: `Bearer ${MARKER}-header`,
  cookie: `sid=${MARKER}-cookie`,
  "x-api-key": `${MARKER}-key`,
  "x-tenant-pin": `${MARKER}-configured`,
  referer: `https://me:${MARKER}-user@a.test/?password=${MARKER}-referer`,
};

const READS = {
  own: 'request.headers["authorization"]',
  dynamic: 'request.headers[string("x-api") + "-key"]',
  configured: 'request.headers["x-tenant-pin"]',
  backends: 'request.headers["x-backend"]',
  cookie: 'request.headers.cookie("sid")',
  referer: "request.headers.referer",
  uri: "request.uri",
  path: "request.path",
  parameter: 'request.pathAndQuery.query()["Access_Token"]',
  answer: 'response.headers["set-cookie"]',
  copied: "metadata.copied",
  everything: "variables()",
};
/** The same as labels of metrics, which have texts only. */
const LABELS = Object.fromEntries(Object.entries(READS).filter(([name]) => name !== "everything"));

test("no output shows a secret of a request, of a backend or of the configuration", async (t) => {
  const upstream = await Upstream.start();
  t.after(() => upstream.close());
  let received: string | undefined;
  upstream.on("/", () => assert.fail("not this path"));
  const path = PATH.slice(0, PATH.indexOf("?"));
  upstream.on(path, (request, response) => {
    received = String(request.headers["x-backend"]);
    const location = `/cb?code=${MARKER}-location`;
    response.writeHead(200, { "set-cookie": `sid=${MARKER}-set`, location }).end("hello");
  });
  await using collector = await TestCollector.http();
  const export_ = { host: `127.0.0.1:${collector.port}`, protocol: "http" };
  const config = (jwks: string) => ({
    config: {
      workerThreads: 1,
      sensitiveHeaders: ["x-tenant-pin"],
      logging: { level: "info,policy=debug" },
      metrics: { fields: { add: LABELS } },
    },
    frontendPolicies: {
      tracing: { ...export_, randomSampling: true, attributes: READS },
      accessLog: { add: READS, otlp: { ...export_, fields: { add: READS } } },
    },
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                name: "secret",
                matches: [
                  {
                    path: { pathPrefix: "/" },
                    query: [{ name: "token", value: { exact: `${MARKER}-match` } }],
                    headers: [{ name: "x-tenant-pin", value: { exact: `${MARKER}-configured` } }],
                  },
                ],
                policies: {
                  jwtAuth: {
                    mode: "optional",
                    issuer: "i",
                    jwks: { url: jwks },
                    location: { header: { name: "x-jwt" } },
                  },
                  transformations: {
                    request: { metadata: { copied: '"was " + request.headers["authorization"]' } },
                  },
                  requestHeaderModifier: { remove: ["authorization"] },
                },
                backends: [
                  {
                    host: upstream.address,
                    policies: {
                      backendAuth: { key: { value: `${MARKER}-backend`, location: { header: { name: "x-backend" } } } },
                    },
                  },
                ],
              },
            ],
          },
        ],
      },
    ],
  });
  const keys = await Upstream.start();
  t.after(() => keys.close());
  const { publicKey } = await generateKeyPair("ES256");
  const set = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "1" }] });
  keys.on("/jwks", (_request, response) => response.end(set));
  await using gateway = await GatewayProcess.start(config(`http://${keys.address}/jwks?token=${MARKER}-jwks`));
  const trace = await traceOf(gateway, () => call(gateway.port(), { path: PATH, headers: HEADERS }));
  assert.equal(received, `${MARKER}-backend`, "the request really had the secrets");
  await gateway.until(() => gateway.lines.some((line) => String(line["http.path"]).startsWith("/in")), "the log line");
  const entries = await collector.until(({ length }) => length >= 3);
  const admin = gateway.url("admin");
  const read = async (address: string): Promise<string> => (await fetch(`${admin}${address}`)).text();
  const tgctl = async (...words: string[]): Promise<string> => {
    const { stdout, stderr } = await invoke(["proxy", ...words, "--local", "--proxy-admin-port", new URL(admin).port]);
    return stdout + stderr;
  };
  const outputs: Record<string, string> = {
    trace: JSON.stringify(trace),
    collector: JSON.stringify(entries, (_key, value) => (typeof value === "bigint" ? String(value) : value)),
    metrics: await gateway.metricsText(),
    dump: await read("/config_dump"),
    tgctl: await tgctl("config", "all"),
    "tgctl json": await tgctl("config", "all", "-o", "json"),
  };
  const revealed = await traceOf(gateway, () => call(gateway.port(), { path: PATH, headers: HEADERS }), {
    reveal: true,
  });
  assert.ok(JSON.stringify(revealed).includes(`${MARKER}-header`), "a trace with reveal shows secrets");
  outputs["trace file"] = traceFileText(trace as unknown as Fields[], false);
  for (const format of ["html", "har", "curl"])
    for (const [name, events] of Object.entries({ trace, revealed })) {
      const file = traceFileText(events as unknown as Fields[], name === "revealed");
      outputs[`${name} as ${format}`] = (await invoke(["trace", "export", "--format", format, "-"], file)).stdout;
    }
  // Whatever the gateway decides about a document that cannot be fetched, it must say so without the token.
  await gateway.reconfigure(config(`http://me:${MARKER}-jwks-user@127.0.0.1:1/jwks?token=${MARKER}-jwks-token`));
  outputs["config status"] = await read("/config/status");
  outputs.log = JSON.stringify(gateway.lines) + gateway.stderr;
  for (const [name, text] of Object.entries(outputs)) {
    assert.ok(text.length > 100, `${name} has content: ${text}`);
    const at = text.indexOf(MARKER);
    assert.equal(at, -1, `${name}: …${text.slice(Math.max(0, at - 100), at + 40)}…`);
    assert.ok(!text.includes(Buffer.from(MARKER).toString("base64").slice(0, 7)), `${name}, in base64`);
  }
  assert.match(outputs.log ?? "", /page=2&token=<redacted>/);
});

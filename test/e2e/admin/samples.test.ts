import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { SampledRequest } from "../../../src/recorder/sample.ts";
import type { SampleFileHeader } from "../../../src/recorder/sample-file.ts";
import { TestGateway } from "../../helpers/gateway.ts";

const SECRET = "hunter2-secret";
const backend = createServer((request, response) => {
  request.resume();
  response.end("hello");
});
let gateway: TestGateway;

function config(settings: object): object {
  const backends = [{ host: `127.0.0.1:${(backend.address() as AddressInfo).port}` }];
  const routes = [
    {
      name: "old",
      matches: [{ path: { pathPrefix: "/old" } }],
      policies: { urlRewrite: { path: { full: "/new" } } },
      backends,
    },
    { name: "shop", matches: [{ path: { pathPrefix: "/shop" } }], backends },
  ];
  const policies = { transformations: { request: { set: { "x-added": '"yes"', "x-own": '"changed"' } } } };
  return { config: settings, binds: [{ port: 0, listeners: [{ name: "web", policies, routes }] }] };
}

before(async () => {
  backend.listen(0, "127.0.0.1");
  await once(backend, "listening");
  gateway = await TestGateway.start(config({ workerThreads: 1 }));
});
after(async () => {
  await gateway.stop();
  backend.close();
});

async function get(path: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers });
  await response.arrayBuffer();
  return response.status;
}

async function samples(query = ""): Promise<{ text: string; header: SampleFileHeader; all: SampledRequest[] }> {
  const response = await fetch(`${gateway.url("admin")}/samples${query}`);
  assert.equal(response.status, 200);
  const text = await response.text();
  const [header, ...all] = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(header.samples, all.length);
  return { text, header, all };
}

test("a sample is the head as it arrived, before policies changed it, with secrets as digests", async () => {
  const headers = {
    cookie: `a=${SECRET}`,
    authorization: `Bearer ${SECRET}`,
    "x-own": "mine",
    referer: `http://r.test/?token=${SECRET}`,
  };
  assert.equal(await get(`/old/cart?color=red&token=${SECRET}`, headers), 200);
  const { text, header, all } = await samples();
  assert.equal(text.includes(SECRET), false);
  assert.equal(header.sampleFile, 1);
  const sample = all.find(({ target }) => target.startsWith("/old"));
  assert.equal(sample?.target, "/old/cart?color=red&token=<redacted>");
  assert.equal(sample.method, "GET");
  assert.equal(sample.scheme, "http");
  assert.equal(sample.version, "1.1");
  assert.equal(sample.authority, `127.0.0.1:${gateway.port()}`);
  assert.equal(sample.weight, 1);
  assert.equal(sample.source, undefined, "clients' addresses are recorded only where the configuration wants it");
  const value = (name: string) => sample.headers.find((field) => field.name === name);
  assert.deepEqual(value("x-own"), { name: "x-own", value: "mine" });
  assert.equal(value("x-added"), undefined);
  assert.deepEqual(value("referer"), { name: "referer", value: "http://r.test/?token=<redacted>" });
  for (const name of ["cookie", "authorization"]) {
    const field = value(name);
    assert.ok(field !== undefined && "digest" in field && field.digest.length === 22, name);
  }
});

test("a sample says that a body of any length follows, and to which protocols the client offers to switch", async () => {
  const address = `http://127.0.0.1:${gateway.port()}`;
  const chunked = request(`${address}/shop/upload`, { method: "POST" });
  chunked.write("one");
  chunked.end("two");
  const [answered] = await once(chunked, "response");
  await once(answered.resume(), "end");
  await fetch(`${address}/shop/sized`, { method: "POST", body: "five!" }).then((response) => response.text());
  const upgrade = request(`${address}/shop/live`, { headers: { connection: "upgrade", upgrade: "websocket" } });
  upgrade.end();
  const [refused] = await once(upgrade, "response");
  await once(refused.resume(), "end");
  const h2 = connect(address);
  const stream = h2.request({ ":method": "POST", ":path": "/shop/h2" });
  stream.end("bytes");
  await once(stream.resume(), "end");
  h2.close();
  const { all } = await samples();
  const of = (path: string) => {
    const { contentLength, upgrade } = all.find(({ target }) => target === path) ?? {};
    return { contentLength, upgrade };
  };
  assert.deepEqual(of("/shop/upload"), { contentLength: "unknown", upgrade: undefined });
  assert.deepEqual(of("/shop/sized"), { contentLength: 5, upgrade: undefined });
  assert.deepEqual(of("/shop/live"), { contentLength: undefined, upgrade: "websocket" });
  assert.deepEqual(of("/shop/h2"), { contentLength: "unknown", upgrade: undefined });
});

test("samples stand for all requests of their route, and for those without one", async () => {
  for (let i = 0; i < 40; i++) await get(`/shop/${i}`);
  for (let i = 0; i < 3; i++) assert.equal(await get(`/none/${i}`), 404);
  const { all } = await samples();
  const weightOf = (prefix: string) =>
    all.filter(({ target }) => target.startsWith(prefix)).reduce((sum, { weight }) => sum + weight, 0);
  assert.equal(weightOf("/none"), 3);
  // With the four of the test before. The latest requests may wait for the next sample.
  const weight = weightOf("/shop");
  assert.ok(weight >= 16 && weight <= 44, `${weight}`);
  const { all: none } = await samples("?last=0s");
  assert.deepEqual(none, []);
});

test("a sample has no address of a client, unless the configuration wants that", async () => {
  const address = "203.0.113.9";
  const forwarded = { "x-forwarded-for": address, forwarded: `for=${address}`, "x-real-ip": address };
  for (const clientAddress of [false, true]) {
    const frontendPolicies = { http: { forwarded: { trustedProxies: ["127.0.0.0/8"] } } };
    await using other = await TestGateway.start({ ...config({ recorder: { clientAddress } }), frontendPolicies });
    for (const headers of [{}, forwarded])
      await (await fetch(`http://127.0.0.1:${other.port()}/shop`, { headers })).arrayBuffer();
    const text = await (await fetch(`${other.url("admin")}/samples`)).text();
    const [direct, proxied] = text
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((line): SampledRequest => JSON.parse(line));
    const names = (sample?: SampledRequest) => sample?.headers.map(({ name }) => name) ?? [];
    assert.deepEqual(
      names(direct).filter((name) => name.startsWith("x-forwarded-")),
      [],
      "the gateway has added them",
    );
    assert.deepEqual(
      Object.keys(forwarded).filter((name) => !names(proxied).includes(name)),
      [],
    );
    assert.equal(text.includes(address), clientAddress);
  }
});

test("samples can be turned off", async () => {
  await using other = await TestGateway.start(config({ recorder: { samples: 0 } }));
  const response = await fetch(`${other.url("admin")}/samples`);
  assert.equal(response.status, 400);
  assert.match(await response.text(), /no samples are taken: config\.recorder\.samples is 0/);
});

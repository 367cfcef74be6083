import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { test } from "node:test";
import { opened } from "../../test/helpers/opened.ts";
import { irOf } from "../../test/helpers/supervisor.ts";
import { appRoot } from "../base/app-root.ts";
import { loadConfig } from "../config/load.ts";
import { rehearse } from "../main/explain.ts";
import { namedKey } from "../upstream/endpoints/endpoints.ts";
import { requestOf } from "./curl.ts";
import { factsOfRequest } from "./facts.ts";
import { Rehearsal } from "./rehearsal.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1_000_000, sessionKey: new Uint8Array(32) };

test("a rehearsal opens no socket and no file, and looks up no name: mirrors, services, retries, datagrams", async () => {
  const host = { host: "backend.invalid:80" };
  const grpc = { ...host, protocol: { grpc: {} } };
  const policies = {
    extAuthz: grpc,
    remoteRateLimit: {
      ...host,
      domain: "d",
      descriptors: [{ entries: [{ key: "k", value: '"v"' }], type: "requests" }],
    },
    extProc: host,
    requestMirror: { backend: host, percentage: 1 },
    retry: { attempts: 2, backoff: "1ms", codes: [503] },
  };
  const routes = [{ name: "all", policies, backends: [host, { host: "127.0.0.1:9", weight: 2 }] }];
  const tcpRoutes = [{ name: "all", backends: [host, { host: "127.0.0.1:9" }] }];
  const frontendPolicies = { networkExtAuthz: grpc };
  const binds = [
    { port: 80, listeners: [{ routes }] },
    { port: 81, listeners: [{ protocol: "TCP", tcpRoutes }] },
    { port: 82, listeners: [{ protocol: "UDP", tcpRoutes }] },
  ];
  const rehearsal = new Rehearsal(irOf({ frontendPolicies, binds }), SETTINGS);
  try {
    const run = async (): Promise<void> => {
      for (const words of [["POST", "http://a/", "-d", "k=v"], ["tcp://a:81"], ["udp://a:82", "-d", "x"]]) {
        const facts = factsOfRequest(requestOf(words));
        for (const assumed of facts.method === "" ? [{}] : [{}, { response: { status: 503 } }]) {
          const { outcomes } = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), assumed);
          assert.ok(outcomes.length > 2);
          assert.ok(outcomes.some(({ record }) => record?.endpoint !== undefined));
        }
      }
    };
    assert.deepEqual(await opened(run), []);
  } finally {
    rehearsal.close();
  }
});

test("what is assumed about an address applies to those of a name that the gateway has found", async () => {
  const routes = [{ name: "all", backends: [{ host: "app.test:80" }] }];
  const rehearsal = new Rehearsal(irOf({ binds: [{ port: 80, listeners: [{ routes }] }] }), SETTINGS);
  try {
    const addresses = ["10.0.0.1", "10.0.0.2"].map((each) => ({ at: [each], rank: 0, share: 1 }));
    const names = [{ key: namedKey({ host: "app.test", port: 80 }, 1), addresses }];
    rehearsal.notices = { evictions: [], healths: [], names };
    const facts = factsOfRequest(requestOf(["http://a/"]));
    const assumed = { endpoints: { "10.0.0.1:80": "unhealthy" } } as const;
    const { outcomes } = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), assumed);
    assert.deepEqual([...new Set(outcomes.map(({ record }) => record?.endpoint))], ["10.0.0.2:80"]);
    rehearsal.notices = { evictions: [], healths: [], names: [] };
    const later = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), {});
    assert.deepEqual([...new Set(later.outcomes.map(({ record }) => record?.endpoint))], ["app.test:80"]);
  } finally {
    rehearsal.close();
  }
});

/** The examples that a rehearsal can load without the network. */
const EXAMPLES = globSync("examples/**/*.yaml", { cwd: appRoot }).filter((name) => !name.includes("cases/"));

test("a rehearsal of any example opens nothing either, whatever its policies call", async () => {
  const env = { OIDC_COOKIE_SECRET: "0".repeat(64) };
  let runs = 0;
  for (const name of EXAMPLES) {
    const loaded = loadConfig({ kind: "files", paths: [appRoot + name] }, env);
    if (!loaded.ok) continue;
    const run = async (): Promise<void> => {
      const rehearsal = rehearse(loaded, env);
      try {
        for (const bind of rehearsal.binds) {
          const { protocol, port } = bind;
          const scheme = protocol === "tls" ? "https" : protocol;
          const facts = factsOfRequest({ url: `${scheme}://a.example:${port}`, headers: [], body: "" });
          runs += (await rehearsal.outcomes(facts, bind, {})).outcomes.length;
        }
      } finally {
        rehearsal.close();
      }
    };
    assert.deepEqual(await opened(run), [], name);
  }
  assert.ok(runs > 50, `only ${runs}`);
});

test("what a rehearsal assumes of an endpoint does not outlast it", async () => {
  const health = { eviction: { duration: "1h" } };
  const routes = [{ name: "all", backends: [{ host: "127.0.0.1:9", policies: { health } }] }];
  const rehearsal = new Rehearsal(irOf({ binds: [{ port: 80, listeners: [{ routes }] }] }), SETTINGS);
  try {
    const facts = factsOfRequest(requestOf(["http://a/"]));
    const [bind] = rehearsal.binds;
    assert.ok(bind !== undefined);
    const kinds = async (assumed: object): Promise<unknown[]> => {
      const {
        outcomes: [outcome],
      } = await rehearsal.outcomes(facts, bind, assumed);
      return (outcome?.events ?? []).flatMap(({ message }) => (message.type === "policy" ? [message.kind] : []));
    };
    assert.deepEqual(await kinds({ response: { status: 503 } }), ["health"]);
    assert.deepEqual(await kinds({}), []);
  } finally {
    rehearsal.close();
  }
});

test("a gRPC call succeeds unless something else is assumed, also where the gateway finds out whether the backend speaks HTTP/2", async () => {
  const settings = { asked: {}, told: { http: { version: "HTTP/2.0" } }, offered: { backendTLS: { insecure: true } } };
  for (const [name, policies] of Object.entries(settings)) {
    const routes = [{ name, backends: [{ host: "127.0.0.1:9", policies }] }];
    const rehearsal = new Rehearsal(irOf({ binds: [{ port: 80, listeners: [{ routes }] }] }), SETTINGS);
    try {
      const headers = [["content-type", "application/grpc"]] as const;
      const facts = factsOfRequest({ url: "http://a/s/M", method: "POST", headers, body: "\0\0\0\0\0", version: "2" });
      const statusOf = async (assumed: object): Promise<unknown[]> => {
        const { outcomes } = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), assumed);
        return outcomes.map(({ record }) => [record?.status, record?.grpcStatus, record?.error]);
      };
      assert.deepEqual(await statusOf({}), [[200, 0, undefined]], name);
      const response = { headers: { "grpc-status": "5", "grpc-message": "no cart" } };
      const [[, code] = []] = (await statusOf({ response })) as [unknown[]];
      assert.equal(code, 5, name);
      const [[busy, none] = []] = (await statusOf({ response: { status: 503 } })) as [unknown[]];
      assert.deepEqual([busy, none], [503, undefined], name);
    } finally {
      rehearsal.close();
    }
  }
});

test("of several binds with one port, the address in the URL chooses", () => {
  const routes = [{ backends: [{ host: "127.0.0.1:9" }] }];
  const bind = (address?: string): object => ({ port: 80, ...(address && { address }), listeners: [{ routes }] });
  const rehearsal = new Rehearsal(irOf({ binds: [bind(), bind("127.0.0.1"), bind("192.0.2.1")] }), SETTINGS);
  try {
    const key = (url: string): string => rehearsal.bindFor(new URL(url)).key;
    assert.equal(key("http://127.0.0.1/"), "bind/127.0.0.1:80");
    assert.equal(key("http://localhost/"), "bind/127.0.0.1:80");
    assert.equal(key("http://192.0.2.1/"), "bind/192.0.2.1:80");
    assert.equal(key("http://192.0.2.2/"), "bind/80");
    assert.equal(key("http://[2001:db8::1]/"), "bind/80");
    assert.throws(() => key("http://shop.example/"), /3 binds on port 80, and the address decides/);
  } finally {
    rehearsal.close();
  }
});

/** Requests count from the policy until they are over, on every way in which a request can end. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { H2Client } from "../../helpers/h2-client.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

/** Attempts to see the end of a request, which the gateway may notice later than the test. */
const ATTEMPTS = 500;
const UPGRADE = ["Connection: upgrade", "Upgrade: chat"];
const CANCEL = 8;
/** A connection for each request, so that none is repeated because its connection was an old one. */
const CLOSE = ["Connection: close"];

let upstream: RawUpstream;
let gateway: LocalGateway;
/** Connections of requests that the backend has not answered, by their path. */
const held = new Map<string, RawPeer>();
let failures = 0;

/** One request at a time for each path, whatever its query. `status`: of the path that no backend serves. */
function config(status = 418): object {
  const at = (pathPrefix: string, policies: object = {}) => ({
    matches: [{ path: { pathPrefix } }],
    policies: { concurrencyLimit: [{ maxRequests: 9 }, { maxRequests: 1, key: "request.path" }], ...policies },
    backends: [{ host: `127.0.0.1:${upstream.port}` }],
  });
  const routes = [
    at("/"),
    at("/csrf", { csrf: {} }),
    at("/retry", { retry: { attempts: 2, codes: [503] } }),
    at("/direct", { directResponse: { status } }),
  ];
  return { binds: [{ port: 0, listeners: [{ routes }] }] };
}

before(async () => {
  upstream = await RawUpstream.listen(async (peer) => {
    while (await peer.hasMore()) {
      const { start } = await peer.message();
      const path = start.split(/[ ?]/)[1] ?? "";
      if (start.includes("?hold")) {
        held.set(path, peer);
        return;
      }
      peer.send(path === "/retry" && failures++ % 2 === 0 ? reply("", CLOSE, "503 Busy") : reply("ok", CLOSE));
    }
  });
  gateway = await LocalGateway.start(config());
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const head = (path: string, fields: readonly string[] = [], method = "GET"): string =>
  `${method} ${path} HTTP/1.1\r\n${["Host: a", ...fields].map((field) => `${field}\r\n`).join("")}\r\n`;

async function ask(path: string, ...more: [fields?: readonly string[], method?: string]): Promise<number> {
  return statusOf(await RawPeer.ask(gateway.port(), head(path, ...more)));
}

/** The backend's side of the request on this path that waits for its response. */
async function atBackend(path: string): Promise<RawPeer> {
  await gateway.until(() => held.has(path), `the request for ${path}`);
  const peer = held.get(path);
  assert.ok(peer !== undefined);
  held.delete(path);
  return peer;
}

async function untilOver(path: string): Promise<void> {
  for (let i = 0; i < ATTEMPTS; i++) if ((await ask(path)) === 200) return;
  assert.fail(`the request for ${path} still counts`);
}

const WAYS: Readonly<Record<string, (client: RawPeer, backend: RawPeer) => Promise<void>>> = {
  "its response is complete": async (client, backend) => {
    backend.send(reply("late", CLOSE));
    assert.equal((await client.message()).body, "late");
  },
  "its client leaves": async (client) => client.reset(),
  "its backend leaves before the response": async (client, backend) => {
    backend.reset();
    assert.equal(statusOf(await client.message()), 503);
  },
  "its backend leaves within the response": async (client, backend) => {
    backend.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart");
    await client.take("part");
    backend.reset();
    await client.closed();
  },
  "its WebSocket is closed": async (client, backend) => {
    backend.send(`HTTP/1.1 101 Switching Protocols\r\n${UPGRADE.join("\r\n")}\r\n\r\n`);
    await client.take("\r\n\r\n");
    backend.send("hello");
    await client.take("hello");
    assert.equal(await ask("/its-WebSocket-is-closed"), 429);
    client.end();
    backend.end();
    await client.closed();
  },
};

for (const [way, end] of Object.entries(WAYS))
  test(`a request counts once until ${way}`, async () => {
    const path = `/${way.replaceAll(" ", "-")}`;
    // The second time shows that the first was not counted down twice.
    for (let time = 0; time < 2; time++) {
      const client = await RawPeer.connect(gateway.port());
      client.send(head(`${path}?hold`, way.includes("WebSocket") ? UPGRADE : []));
      const backend = await atBackend(path);
      assert.equal(await ask(path), 429);
      assert.equal(await ask("/other"), 200);
      await end(client, backend);
      await untilOver(path);
      client.socket.destroy();
    }
  });

test("streams of HTTP/2 count until they are reset or the connection ends", async () => {
  for (const end of ["reset", "destroy"] as const) {
    const client = await H2Client.connect(gateway.port());
    client.request(1, "GET", [], "/h2?hold");
    await atBackend("/h2");
    client.request(3, "GET", [], "/h2");
    assert.equal(H2Client.status(await client.response(3)), 429);
    if (end === "reset") client.reset(1, CANCEL);
    else client.peer.reset();
    await untilOver("/h2");
    client.peer.socket.destroy();
  }
});

test("requests that are rejected later, answered by the gateway or retried count once", async () => {
  const fields = ["Origin: https://evil.example", "Content-Length: 0"];
  for (let i = 0; i < 3; i++) {
    assert.equal(await ask("/csrf", fields, "POST"), 403);
    assert.equal(await ask("/direct"), 418);
    assert.equal(await ask("/retry"), 200);
  }
  assert.equal(failures, 6);
});

test("a reload keeps the counts; the response and the log say which limit was reached", async () => {
  const client = await RawPeer.connect(gateway.port());
  client.send(head("/kept?hold"));
  const backend = await atBackend("/kept");
  await gateway.reconfigure(config(204));
  assert.equal(await ask("/direct"), 204);
  const refused = await RawPeer.ask(gateway.port(), head("/kept"));
  assert.equal(statusOf(refused), 429);
  assert.equal(refused.body, "too many requests in progress");
  const shown = ["x-ratelimit-limit", "x-ratelimit-remaining", "retry-after"].map((name) => valuesOf(refused, name));
  assert.deepEqual(shown, [["1"], ["0"], []]);
  const line = gateway.lines.findLast((each) => each["http.path"] === "/kept");
  assert.equal(line?.reason, "ConcurrencyLimit");
  assert.match(String(line?.error), /1 request of this `request.path` is in progress already; at most 1 may be/);
  backend.send(reply("late", CLOSE));
  assert.equal(statusOf(await client.message()), 200);
  await untilOver("/kept");
  client.socket.destroy();
});

test("a limit of a gateway counts the requests of all its listeners, one of a listener those of it", async () => {
  const routes = [
    { name: "r", policies: { delay: { duration: '"x-stay" in request.headers ? duration("1h") : duration("0s")' } } },
  ];
  const concurrencyLimit = [{ maxRequests: 1 }];
  const listener = (name: string, policies: object = {}): object => {
    const served = { directResponse: { status: 204 } };
    return {
      name,
      hostname: `${name}.test`,
      policies,
      routes: routes.map((route) => ({ ...route, policies: { ...route.policies, ...served } })),
    };
  };
  await using limited = await LocalGateway.start({
    binds: [{ port: 0, listeners: [listener("a"), listener("b"), listener("own", { concurrencyLimit })] }],
    policies: [
      {
        name: { name: "all" },
        target: { gateway: { gatewayName: "default" } },
        phase: "gateway",
        policy: { concurrencyLimit },
      },
    ],
  });
  const statusAt = async (host: string): Promise<number> =>
    statusOf(await RawPeer.ask(limited.port(), `GET / HTTP/1.1\r\nHost: ${host}.test\r\n\r\n`));
  const staying = await RawPeer.connect(limited.port());
  staying.send("GET / HTTP/1.1\r\nHost: a.test\r\nX-Stay: 1\r\n\r\n");
  for (let i = 0; i < ATTEMPTS && (await statusAt("a")) !== 429; i++);
  assert.deepEqual([await statusAt("a"), await statusAt("b"), await statusAt("own")], [429, 429, 204]);
  staying.socket.destroy();
});

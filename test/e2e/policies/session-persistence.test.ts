import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";

const NAMES = ["a", "b", "c", "d"] as const;
type Name = (typeof NAMES)[number];

const backends = new Map<Name, RawUpstream>();
/** Responds with 503. */
const failing = new Set<Name>();

before(async () => {
  for (const name of NAMES)
    backends.set(
      name,
      await RawUpstream.answering(() => reply(name, [], failing.has(name) ? "503 Service Unavailable" : "200 OK")),
    );
});
after(async () => {
  for (const backend of backends.values()) await backend[Symbol.asyncDispose]();
});

const port = (name: Name): number => backends.get(name)?.port ?? 0;

/** A gateway with these routes, and a service with a workload for each of these backends. */
function config(routes: readonly object[], workloads: readonly Name[] = []): object {
  return {
    binds: [{ port: 0, listeners: [{ routes }] }],
    services: [{ name: "shop", namespace: "n", hostname: "shop.local", ports: { 80: 80 } }],
    workloads: workloads.map((name) => ({
      uid: name,
      name,
      namespace: "n",
      workloadIps: ["127.0.0.1"],
      services: { "n/shop.local": { 80: port(name) } },
    })),
  };
}

const SERVICE = { service: { name: "n/shop.local", port: 80 } };

function at(pathPrefix: string, sessionPersistence: object, more: object): object {
  return { matches: [{ path: { pathPrefix } }], policies: { sessionPersistence }, backends: [SERVICE], ...more };
}

interface Answer {
  readonly body: string;
  /** `name=value` of a cookie that the response sets. */
  readonly cookie: string | undefined;
}

async function ask(gateway: LocalGateway, path: string, cookie = ""): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, {
    headers: cookie === "" ? {} : { cookie },
  });
  const [set] = response.headers.getSetCookie();
  return { body: await response.text(), cookie: set?.split(";", 1)[0] };
}

/** The backends of several requests, fewer with a session. */
async function backendsOf(gateway: LocalGateway, path: string, cookie = ""): Promise<Set<string>> {
  const seen = new Set<string>();
  for (let i = 0; i < (cookie === "" ? 40 : 10); i++) seen.add((await ask(gateway, path, cookie)).body);
  return seen;
}

test("a session stays with its endpoint of a service, in every replica, while others are balanced", async () => {
  const shop = config([at("/", { sessionName: "s" }, {})], ["a", "b", "c"]);
  await using one = await LocalGateway.start(shop);
  await using two = await LocalGateway.start(shop);
  const { body, cookie } = await ask(one, "/");
  assert.deepEqual(await backendsOf(one, "/", cookie), new Set([body]));
  assert.deepEqual(await backendsOf(two, "/", cookie), new Set([body]));
  assert.equal((await ask(one, "/", cookie)).cookie, undefined, "the client has it already");
  assert.equal((await backendsOf(one, "/")).size, 3);
});

test("all workers of a process accept each other's sessions", async () => {
  const shop = config([at("/", { sessionName: "s" }, {})], ["a", "b", "c"]);
  const gateway = await TestGateway.start({ ...shop, config: { workerThreads: 2 } });
  try {
    const tasks = async (): Promise<object> =>
      ((await (await fetch(`${gateway.url("admin")}/debug/tasks`)).json()) as { workload: object }).workload;
    const first = await fetch(`http://127.0.0.1:${gateway.port()}/`, { headers: { connection: "close" } });
    const [cookie = ""] = first.headers.getSetCookie();
    const body = await first.text();
    const request = `GET / HTTP/1.1\r\nHost: a\r\nCookie: ${cookie.split(";", 1)[0]}\r\n\r\n`;
    // The system spreads connections: they stay open until both workers have served some.
    const clients: RawPeer[] = [];
    const served = (workload: object): number =>
      Object.values(workload).filter((list) => JSON.stringify(list).includes('"client"')).length;
    while (served(await tasks()) < 2) {
      assert.ok(clients.length < 200, "one worker gets all connections");
      for (let i = 0; i < 10; i++) {
        const client = await RawPeer.connect(gateway.port());
        clients.push(client);
        client.send(request);
        assert.equal((await client.message()).body, body);
      }
    }
    for (const { socket } of clients) socket.destroy();
  } finally {
    await gateway.stop();
  }
});

test("when the endpoint is removed, the session moves to another one and stays there", async () => {
  const routes = [at("/", {}, {})];
  await using gateway = await LocalGateway.start(config(routes, ["a", "b", "c"]));
  const first = await ask(gateway, "/");
  await gateway.reconfigure(
    config(
      routes,
      NAMES.filter((name) => name !== first.body),
    ),
  );
  const moved = await ask(gateway, "/", first.cookie);
  assert.notEqual(moved.body, first.body);
  assert.notEqual(moved.cookie, undefined);
  assert.deepEqual(await backendsOf(gateway, "/", moved.cookie), new Set([moved.body]));
});

test("sessions stay with a backend of a split, even if its weight becomes 0", async () => {
  const split = (weight: number) =>
    config([
      at(
        "/",
        {},
        {
          backends: [
            { host: `127.0.0.1:${port("a")}`, weight },
            { host: `127.0.0.1:${port("b")}`, weight: 1 },
          ],
        },
      ),
    ]);
  await using gateway = await LocalGateway.start(split(1_000_000));
  const { body, cookie } = await ask(gateway, "/");
  assert.equal(body, "a");
  await gateway.reconfigure(split(0));
  assert.deepEqual(await backendsOf(gateway, "/", cookie), new Set(["a"]));
  assert.deepEqual(await backendsOf(gateway, "/"), new Set(["b"]));
});

test("routes do not share sessions, and cookies have the path of the match", async () => {
  const exact = { matches: [{ path: { exact: "/here/now" } }] };
  const regex = { matches: [{ path: { regex: "/x/y[0-9]+/z" } }] };
  const routes = [
    at("/one", { sessionName: "s" }, {}),
    at("/two", { sessionName: "s" }, {}),
    at("", {}, exact),
    at("", {}, regex),
    at("/", {}, {}),
  ];
  await using gateway = await LocalGateway.start(config(routes, ["a", "b", "c"]));
  const { cookie } = await ask(gateway, "/one");
  assert.equal((await ask(gateway, "/one", cookie)).cookie, undefined, "the session goes on");
  assert.notEqual((await ask(gateway, "/two", cookie)).cookie, undefined, "another one begins");
  for (const [path, expected] of [
    ["/one/more", "/one"],
    ["/here/now", "/here/now"],
    ["/x/y7/z", "/x"],
    ["/else", "/"],
  ] as const) {
    const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`);
    assert.match(
      response.headers.getSetCookie()[0] ?? "",
      new RegExp(`; Path=${expected}; HttpOnly; SameSite=Strict$`),
    );
  }
});

test("a retry chooses another endpoint, and the session moves with it", async () => {
  const more = {
    policies: { sessionPersistence: { sessionName: "s" }, retry: { attempts: 1, codes: [503] } },
  };
  await using gateway = await LocalGateway.start(config([at("/", {}, more)], ["a", "b"]));
  const first = await ask(gateway, "/");
  failing.add(first.body as Name);
  try {
    const moved = await ask(gateway, "/", first.cookie);
    assert.notEqual(moved.body, first.body);
    assert.match(moved.cookie ?? "", /^s=/);
  } finally {
    failing.clear();
  }
});

test("an evicted endpoint gets no requests of its sessions", async () => {
  const policies = { health: { eviction: { duration: "1h", consecutiveFailures: 1 } } };
  await using gateway = await LocalGateway.start(
    config([at("/", {}, { backends: [{ ...SERVICE, policies }] })], ["a", "b"]),
  );
  const first = await ask(gateway, "/");
  failing.add(first.body as Name);
  try {
    // The response of the failure itself is forwarded.
    await ask(gateway, "/", first.cookie);
    const moved = await ask(gateway, "/", first.cookie);
    assert.notEqual(moved.body, first.body);
    assert.notEqual(moved.cookie, undefined);
  } finally {
    failing.clear();
  }
});

test("a dynamic backend has no endpoints to choose from, so its clients get no session", async () => {
  const dynamic = { target: `"127.0.0.1:${port("a")}"` };
  await using gateway = await LocalGateway.start(config([at("/", {}, { backends: [{ dynamic }] })]));
  assert.deepEqual(await ask(gateway, "/"), { body: "a", cookie: undefined });
});

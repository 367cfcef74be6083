import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawPeer } from "../../helpers/raw-peer.ts";
import { logged, metric } from "../tls/support.ts";
import { type Answer, admin, type Call, call, closedPort, traceOf, Upstream } from "../trace/support.ts";

const FUNCTIONS = `
# of connections
internal() { source.address == "127.0.0.1" }
target(port) { "127.0.0.1:" + port }
# of requests
this.under(prefix) { this == prefix || this.startsWith(prefix + "/") }
tenant() { request.path.split("/")[2] }
shout(text, marks...) { text.upperAscii() + marks.join("") }
longBody() { bodySize() > 5 }
bodySize() { size(string(request.body)) }
# of responses
outcome() { response.code >= 400 ? "bad" : "good" }
`;

suite("customFunctions", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let tcpPort: number;

  const config = (customFunctions: string, header = 'shout(tenant(), "!", "!")'): object => {
    const route = (path: string, rest: object): object => ({
      name: path.slice(1),
      matches: [{ path: { pathPrefix: path } }],
      backends: [{ host: upstream.address }],
      ...rest,
    });
    const shouting = { transformations: { response: { set: { "x-tenant": header } } } };
    return {
      config: { workerThreads: 2, customFunctions, metrics: { fields: { add: { outcome: "outcome()" } } } },
      frontendPolicies: {
        networkAuthorization: { rules: ["internal()"] },
        accessLog: { filter: '!request.path.under("/quiet")', add: { tenant: "tenant()", outcome: "outcome()" } },
      },
      gateways: { raw: { port: tcpPort, protocol: "TCP" } },
      tcpRoutes: [{ gateways: "raw", backends: [{ dynamic: { target: `target("${upstream.port}")` } }] }],
      routeGroups: [{ name: "group", routes: [route("/delegated", { policies: shouting })] }],
      binds: [
        {
          port: 0,
          listeners: [
            {
              routes: [
                route("/tenants", { policies: shouting }),
                route("/quiet", {}),
                route("/allowed", { policies: { authorization: { rules: ['request.path.under("/allowed/a")'] } } }),
                route("/body", { policies: { authorization: { rules: [{ deny: "longBody()" }] } } }),
                route("/dynamic", { backends: [{ dynamic: { target: 'target(request.headers["x-port"])' } }] }),
                route("/delegated", { backends: [{ routeGroup: "group" }] }),
              ],
            },
          ],
        },
      ],
    };
  };
  const get = (path: string, rest: Call = {}): Promise<Answer> => call(gateway.port("bind/0"), { path, ...rest });
  const reconfigure = (...args: Parameters<typeof config>): Promise<"applied" | "rejected"> =>
    gateway.reconfigure(config(...args));

  before(async () => {
    upstream = await Upstream.start();
    tcpPort = await closedPort();
    gateway = await TestGateway.start(config(FUNCTIONS));
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  test("policies call them, also those merged from delegating routes", async () => {
    assert.equal((await get("/tenants/blue/items")).headers["x-tenant"], "BLUE!!");
    assert.equal((await get("/delegated/red")).headers["x-tenant"], "RED!!");
    assert.equal((await get("/allowed/a/b")).status, 200);
    assert.equal((await get("/allowed/ab")).status, 403);
  });

  test("a request waits for a body that a function reads", async () => {
    assert.equal((await get("/body", { method: "POST", body: "short" })).status, 200);
    assert.equal((await get("/body", { method: "POST", body: "too long" })).status, 403);
  });

  test("targets of dynamic backends call them, for requests and for connections", async () => {
    const answer = await get("/dynamic", { headers: { "x-port": String(upstream.port) } });
    assert.equal(answer.body.toString(), "hello");
    const client = await RawPeer.connect(tcpPort);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.equal((await client.message()).body, "hello");
    client.end();
  });

  test("the access log and the labels of metrics call them", async () => {
    await get("/quiet/green/x");
    await get("/tenants/green/x");
    await get("/nowhere/green/x");
    const line = { scope: "request", tenant: "green" };
    await logged(gateway, { ...line, "http.path": "/tenants/green/x", outcome: "good" });
    await logged(gateway, { ...line, "http.path": "/nowhere/green/x", outcome: "bad" });
    assert.ok(gateway.lines.every((each) => each["http.path"] !== "/quiet/green/x"));
    assert.ok((await metric(gateway, "requests_total", 'outcome="good"')) > 0);
    assert.ok((await metric(gateway, "requests_total", 'outcome="bad"')) > 0);
  });

  test("the filter of a trace calls them; one that reads more than the request's head is rejected", async () => {
    const events = await traceOf(
      gateway,
      async () => {
        await get("/quiet/one");
        await get("/tenants/two");
      },
      { expression: 'request.path.under("/tenants") && tenant() == "two"' },
    );
    assert.match(JSON.stringify(events), /\/tenants\/two/);
    const refused = admin(gateway).trace({ expression: "true && outcome() == ''" });
    await assert.rejects(refused.opened, /outcome\(\) cannot be called here: it reads response/);
  });

  test("the dump shows the functions in effect; they change with a reload, as a whole or not at all", async () => {
    const shown = async (): Promise<unknown> => {
      const dump = await fetch(`${gateway.url("admin")}/config_dump`);
      return ((await dump.json()) as { config: { customFunctions: unknown } }).config.customFunctions;
    };
    assert.equal(await shown(), FUNCTIONS);
    const quiet = FUNCTIONS.replace("text.upperAscii()", "text.lowerAscii()");
    assert.equal(await reconfigure(quiet), "applied");
    assert.equal((await get("/tenants/BLUE/items")).headers["x-tenant"], "blue!!");
    assert.equal((await get("/delegated/RED")).headers["x-tenant"], "red!!");
    assert.equal(await shown(), quiet);

    assert.equal(await reconfigure(`${quiet}echo() { shout(echo()) }\n`), "rejected");
    assert.match(String(gateway.lines.at(-1)?.message), /functions cannot call themselves: echo\(\) → echo\(\)/);
    assert.equal(await reconfigure(quiet, "whisper(tenant())"), "rejected");
    assert.match(String(gateway.lines.at(-1)?.message), /unknown function whisper/);
    assert.equal((await get("/tenants/BLUE/items")).headers["x-tenant"], "blue!!");

    const whisper = `${quiet}whisper(text) { "(" + shout(text) + ")" }\n`;
    assert.equal(await reconfigure(whisper, "whisper(tenant())"), "applied");
    assert.equal((await get("/tenants/BLUE/items")).headers["x-tenant"], "(blue)");
  });
});

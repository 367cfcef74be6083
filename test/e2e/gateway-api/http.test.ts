/** What the conformance suite of the Gateway API requires of HTTP listeners and routes, without Kubernetes. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { freePorts } from "../../helpers/free-ports.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { type RawMessage, RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { UdpPeer } from "../../helpers/udp-peer.ts";

const answering = (body: string, more: object = {}) => ({
  policies: { directResponse: { status: 200, body } },
  ...more,
});
const http = (name: string, hostname: string, ...routes: object[]) => ({ name, hostname, routes });
const bind = (...listeners: object[]) => ({ port: 0, listeners });
const path = (pathPrefix: string, more: object = {}) => ({ matches: [{ path: { pathPrefix } }], ...more });

/** One request on its own connection. */
async function ask(port: number, host: string, target = "/", fields: readonly string[] = []): Promise<RawMessage> {
  const peer = await RawPeer.connect(port);
  try {
    peer.send([`GET ${target} HTTP/1.1`, `Host: ${host}`, ...fields, "", ""].join("\r\n"));
    return await peer.message();
  } finally {
    peer.socket.destroy();
  }
}

/** The body of a 200, or the status. */
async function outcome(port: number, host: string, target?: string): Promise<string | number> {
  const answer = await ask(port, host, target);
  return statusOf(answer) === 200 ? answer.body : statusOf(answer);
}

suite("HTTP listeners and routes as the Gateway API defines them", () => {
  test("GatewayHTTPListenerIsolation: only the most specific listener serves a request, even if it has no route for it", async () => {
    const own = (prefix: string) => answering(prefix, path(`/${prefix}`));
    await using gateway = await LocalGateway.start({
      binds: [
        bind(
          http("empty", "", own("empty-hostname")),
          http("wildcard", "*.example.com", own("wildcard-example-com")),
          http("foo", "*.foo.example.com", own("wildcard-foo-example-com")),
          http("abc", "abc.foo.example.com", own("abc-foo-example-com")),
        ),
      ],
    });
    const expected = {
      "bar.com": "empty-hostname",
      "bar.example.com": "wildcard-example-com",
      "bar.foo.example.com": "wildcard-foo-example-com",
      "abc.foo.example.com": "abc-foo-example-com",
    };
    for (const [host, served] of Object.entries(expected))
      for (const prefix of Object.values(expected)) {
        const got = await outcome(gateway.port(), host, `/${prefix}`);
        assert.equal(got, prefix === served ? prefix : 404, `${host}/${prefix}`);
        assert.equal(await outcome(gateway.port(), `${host}:8080`, `/${prefix}`), got, "the port does not matter");
      }
  });

  test("HTTPRouteRedirectPortAndScheme: the default port of the scheme is left out", async () => {
    const redirect = (prefix: string, change: object) => ({
      ...path(prefix),
      policies: { requestRedirect: { status: 302, ...change } },
    });
    await using gateway = await LocalGateway.start({
      binds: [
        bind(
          http(
            "web",
            "",
            redirect("/nil-nil", { authority: { host: "example.org" } }),
            redirect("/nil-80", { authority: { full: "example.org:80" } }),
            redirect("/nil-8080", { authority: { full: "example.org:8080" } }),
            redirect("/https-nil", { scheme: "https", authority: { host: "example.org" } }),
            redirect("/https-443", { scheme: "https", authority: { port: 443 } }),
            redirect("/https-8443", { scheme: "https", authority: { port: 8443 } }),
            redirect("/path", { path: { prefix: "/replaced" } }),
            redirect("/full", { path: { full: "/full-path" }, status: 308 }),
          ),
        ),
      ],
    });
    const location = async (target: string, host: string) => {
      const answer = await ask(gateway.port(), host, target);
      return [statusOf(answer), valuesOf(answer, "location")[0]];
    };
    const cases: readonly (readonly [target: string, host: string, status: number, location: string])[] = [
      ["/nil-nil", "example.org", 302, "http://example.org/nil-nil"],
      ["/nil-nil", "example.org:8080", 302, "http://example.org:8080/nil-nil"],
      ["/nil-80", "example.org:8080", 302, "http://example.org:80/nil-80"],
      ["/nil-8080", "example.org", 302, "http://example.org:8080/nil-8080"],
      ["/https-nil", "example.org:8080", 302, "https://example.org/https-nil"],
      ["/https-443", "example.org:80", 302, "https://example.org/https-443"],
      ["/https-8443", "example.org", 302, "https://example.org:8443/https-8443"],
      ["/path/a?b=c", "example.org", 302, "http://example.org/replaced/a?b=c"],
      ["/full/a", "example.org", 308, "http://example.org/full-path"],
    ];
    for (const [target, host, status, expected] of cases)
      assert.deepEqual(await location(target, host), [status, expected], `${host}${target}`);
  });

  test("backends that do not exist get their share of the requests, and 500; no weight 500; no endpoints 503", async () => {
    await using upstream = await RawUpstream.answering(() => reply("v1"));
    const host = `127.0.0.1:${upstream.port}`;
    const services = [{ name: "s", namespace: "default", hostname: "s.local", ports: { 80: 80 } }];
    const service = { name: "default/s.local", port: 80 };
    await using gateway = await LocalGateway.start({
      binds: [
        bind(
          http(
            "web",
            "",
            path("/half", {
              backends: [
                { host, weight: 1 },
                { invalid: {}, weight: 1 },
              ],
            }),
            path("/none", { backends: [{ host, weight: 0 }] }),
            path("/omitted"),
            path("/empty", { backends: [{ service }] }),
          ),
        ),
      ],
      services,
    });
    const seen = new Set<string | number>();
    for (let i = 0; i < 200 && seen.size < 2; i++) seen.add(await outcome(gateway.port(), "h", "/half"));
    assert.deepEqual([...seen].sort(), [500, "v1"]);
    assert.equal(await outcome(gateway.port(), "h", "/none"), 500);
    assert.equal(await outcome(gateway.port(), "h", "/omitted"), 500);
    assert.equal(await outcome(gateway.port(), "h", "/empty"), 503);
  });

  test("HTTPRouteBackendRequestHeaderModification: each backend has its own changes", async () => {
    await using upstream = await RawUpstream.answering((request) =>
      reply(["x-set", "x-add", "x-gone"].map((name) => valuesOf(request, name).join("+")).join("|")),
    );
    const host = `127.0.0.1:${upstream.port}`;
    const change = { requestHeaderModifier: { set: { "X-Set": "new" }, add: { "X-Add": "two" }, remove: ["x-gone"] } };
    await using gateway = await LocalGateway.start({
      binds: [
        bind(
          http(
            "web",
            "",
            path("/changed", { backends: [{ host, policies: change }] }),
            path("/", { backends: [{ host }] }),
          ),
        ),
      ],
    });
    const fields = ["x-set: old", "x-add: one", "X-Gone: away"];
    assert.equal((await ask(gateway.port(), "h", "/changed", fields)).body, "new|one+two|");
    assert.equal((await ask(gateway.port(), "h", "/", fields)).body, "old|one|away");
  });

  test("timeouts of requests and of backends give 504; 0s means no timeout", async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      const { start } = await peer.message();
      if (start.includes("/slow")) await new Promise((resolve) => setTimeout(resolve, 300));
      peer.send(reply("late"));
    });
    const backends = [{ host: `127.0.0.1:${upstream.port}` }];
    const timed = (prefix: string, timeout: object) => path(prefix, { backends, policies: { timeout } });
    await using gateway = await LocalGateway.start({
      binds: [
        bind(
          http(
            "web",
            "",
            timed("/patient", { requestTimeout: "60s", backendRequestTimeout: "60s" }),
            timed("/request", { requestTimeout: "100ms" }),
            timed("/backend", { backendRequestTimeout: "100ms" }),
            timed("/off", { requestTimeout: "0s", backendRequestTimeout: "0s" }),
          ),
        ),
      ],
    });
    const port = gateway.port();
    assert.equal(await outcome(port, "h", "/patient/slow"), "late");
    assert.equal(await outcome(port, "h", "/request/slow"), 504);
    assert.equal(await outcome(port, "h", "/backend/slow"), 504);
    assert.equal(await outcome(port, "h", "/off/slow"), "late");
  });

  test("TCPRoute: connections without a usable backend are closed", async () => {
    const services = [{ name: "s", namespace: "default", hostname: "s.local", ports: { 80: 80 } }];
    const service = { name: "default/s.local", port: 80 };
    for (const backends of [[], [{ service }], [{ host: "127.0.0.1:9", weight: 0 }]]) {
      const listeners = [{ protocol: "TCP", tcpRoutes: [{ backends }] }];
      await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners }], services });
      const peer = await RawPeer.connect(gateway.port());
      await peer.closed();
      assert.equal(peer.received, "");
    }
  });

  test("ports open and close at run time without an effect on connections to others", async () => {
    await using upstream = await RawUpstream.listen();
    await using server = await UdpPeer.open((text) => text);
    const backends = [{ host: `127.0.0.1:${upstream.port}` }];
    const steady = bind(http("steady", "", path("/slow", { backends }), answering("steady")));
    await using gateway = await LocalGateway.start({ binds: [steady] });
    const kept = await RawPeer.connect(gateway.port("bind/0"));
    const slow = await RawPeer.connect(gateway.port("bind/0"));
    slow.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    const backend = await upstream.connection();
    await backend.message();
    const tcpRoutes = [{ backends: [{ host: server.address }] }];
    const extra = await freePorts(3);
    for (let round = 0; round < 10; round++) {
      const [first = 0, second = 0, third = 0] = extra;
      await gateway.reconfigure({
        binds: [
          steady,
          { port: first, listeners: [http("extra", "", answering(`round ${round}`))] },
          { port: second, listeners: [{ protocol: "TCP", tcpRoutes: [{ backends }] }] },
          { port: third, listeners: [{ protocol: "UDP", tcpRoutes }] },
        ],
      });
      assert.equal(await outcome(first, "h"), `round ${round}`);
      await using client = await UdpPeer.open();
      assert.equal(await client.ask(`${round}`, third), `${round}`);
      await gateway.reconfigure({ binds: [steady] });
      await assert.rejects(RawPeer.connect(first), /ECONNREFUSED/);
      kept.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
      assert.equal((await kept.message()).body, "steady");
    }
    backend.send(reply("done"));
    assert.equal((await slow.message()).body, "done");
    for (const { socket } of [kept, slow]) socket.destroy();
  });
});

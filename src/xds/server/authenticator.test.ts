import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { TestApiServer } from "../../../test/helpers/kube/api-server.ts";
import { until } from "../../../test/helpers/until.ts";
import { GATEWAY, stateOf, TestXdsServer } from "../../../test/helpers/xds.ts";
import { NODE, XdsPeer } from "../../../test/helpers/xds-peer.ts";
import type { KubeClient } from "../../kube/client.ts";
import { AuthError, type Authenticate, tokenReviewer } from "./authenticator.ts";

const folder = mkdtempSync(join(tmpdir(), "tracegate-xds-"));
after(() => rmSync(folder, { recursive: true }));
const STATE = stateOf({ binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes: [{ name: "r" }] }] }] });

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

suite("tokens of proxies", () => {
  const users = {
    right: { username: "system:serviceaccount:ns:gw", audiences: ["tracegate"] },
    neighbour: { username: "system:serviceaccount:ns:other", audiences: ["tracegate"] },
    elsewhere: { username: "system:serviceaccount:else:gw", audiences: ["tracegate"] },
    audience: { username: "system:serviceaccount:ns:gw", audiences: ["vault"] },
    person: { username: "alice", audiences: ["tracegate"] },
  };
  const refusals: readonly (readonly [token: string, reason: RegExp])[] = [
    ["unknown", /^gRPC status 16: the token is not valid/],
    ["audience", /^gRPC status 16: the token (is not valid|was not made for the audience tracegate)/],
    ["person", /^gRPC status 16: the token does not belong to a ServiceAccount/],
    ["neighbour", /^gRPC status 7: ServiceAccount ns\/other may not read the configuration of Gateway ns\/gw/],
    ["elsewhere", /^gRPC status 7: ServiceAccount else\/gw may not read the configuration of Gateway ns\/gw/],
  ];

  test("the token of the Gateway's own ServiceAccount is accepted, others are rejected and counted", async () => {
    await using api = await TestApiServer.start();
    for (const [token, user] of Object.entries(users)) api.tokens.set(token, user);
    const authenticate = tokenReviewer(api.client(), "tracegate");
    await using server = await TestXdsServer.start({ authenticate });
    server.server.publish(GATEWAY, STATE);
    const { address } = server;
    for (let i = 0; i < 3; i++) {
      using peer = new XdsPeer({ address, token: file("right", "right\n") });
      assert.equal((await peer.batch()).length, 1);
    }
    const reviews = (): number => api.received.filter(({ path }) => path.endsWith("/tokenreviews")).length;
    assert.equal(reviews(), 1);
    using without = new XdsPeer({ address });
    assert.match(await without.end(), /^gRPC status 16: a ServiceAccount token is required/);
    for (const [token, reason] of refusals) {
      using peer = new XdsPeer({ address, token: file(token, token) }, NODE);
      assert.match(await peer.end(), reason);
      assert.deepEqual(peer.responses, []);
    }
    const counts = Object.fromEntries(server.server.metrics().map(({ name, samples }) => [name, samples[0]?.value]));
    assert.equal(counts.tracegate_xds_auth_rq_total, 9);
    assert.equal(counts.tracegate_xds_auth_rq_success_total, 3);
    assert.equal(counts.tracegate_xds_auth_rq_failure_total, 6);
    assert.ok(!server.lines.some((line) => Object.keys(users).some((token) => line.includes(` ${token} `))));
  });

  test("a token that cannot be checked is rejected as unavailable", async () => {
    const api = await TestApiServer.start();
    const authenticate = tokenReviewer(api.client(), "tracegate");
    await api.stop();
    await using server = await TestXdsServer.start({ authenticate });
    using peer = new XdsPeer({ address: server.address, token: file("right", "right") });
    assert.match(await peer.end(), /^gRPC status 14: the token could not be checked/);
  });

  test("while checks fail, new streams are rejected and open ones stay", async () => {
    await using api = await TestApiServer.start();
    api.tokens.set("right", users.right);
    await using server = await TestXdsServer.start({ authenticate: unremembered(api), recheck: 5 });
    using peer = new XdsPeer({ address: server.address, token: file("right", "right") });
    server.server.publish(GATEWAY, STATE);
    await peer.batch();
    const asked = brokenFromNow(api);
    using late = new XdsPeer({ address: server.address, token: file("right", "right") });
    assert.match(await late.end(), /^gRPC status 14: the token could not be checked/);
    await until(() => asked() > 3, "further checks");
    assert.equal(server.server.proxies.length, 1);
  });

  test("a stream ends when its token becomes invalid", async () => {
    await using api = await TestApiServer.start();
    api.tokens.set("right", users.right);
    await using server = await TestXdsServer.start({ authenticate: unremembered(api), recheck: 5 });
    using peer = new XdsPeer({ address: server.address, token: file("right", "right") });
    await until(() => server.server.proxies.length === 1, "the proxy");
    api.tokens.delete("right");
    assert.match(await peer.end(), /^gRPC status 16: the token is not valid/);
    assert.deepEqual(server.server.proxies, []);
  });

  test("a proxy cannot act for another pod, and has at most a few streams", async () => {
    await using api = await TestApiServer.start();
    api.tokens.set("right", { ...users.right, extra: { "authentication.kubernetes.io/pod-name": ["gw-7"] } });
    await using server = await TestXdsServer.start({ authenticate: tokenReviewer(api.client(), "tracegate") });
    const peers = Array.from(
      { length: 4 },
      () => new XdsPeer({ address: server.address, token: file("right", "right") }),
    );
    await until(() => server.server.proxies.length === 4, "the streams");
    assert.deepEqual(new Set(server.server.proxies.map(({ pod }) => pod)), new Set(["gw-7"]));
    using fifth = new XdsPeer({ address: server.address, token: file("right", "right") });
    assert.match(await fifth.end(), /^gRPC status 8: pod gw-7 has 4 streams already/);
    assert.equal(server.server.proxies.length, 4);
    for (const each of peers) each.close();
  });
});

suite("reviews of tokens", () => {
  const review = (status: object, ask?: () => Promise<void>): { readonly client: KubeClient; asked: number } => {
    const reviewer = {
      asked: 0,
      client: {
        async request<T>(): Promise<T> {
          reviewer.asked++;
          await ask?.();
          return { status } as T;
        },
        watch() {
          throw new Error("not asked for");
        },
      } satisfies KubeClient,
    };
    return reviewer;
  };
  const user = { username: "system:serviceaccount:ns:gw" };

  test("a review without audiences authenticates no proxy", async () => {
    for (const audiences of [undefined, [], ["https://kubernetes.default.svc"]]) {
      const { client } = review({ authenticated: true, user, ...(audiences !== undefined && { audiences }) });
      await assert.rejects(tokenReviewer(client, "tracegate")("t"), /was not made for the audience tracegate/);
    }
  });

  test("results are cached by token: a minute if it is valid, 10 s if not", async () => {
    for (const [authenticated, lasts] of [
      [true, 60_000],
      [false, 10_000],
    ] as const) {
      let now = 0;
      const reviewer = review({ authenticated, user, audiences: ["tracegate"] });
      const authenticate = tokenReviewer(reviewer.client, "tracegate", () => now);
      const outcome = (): Promise<boolean> => authenticate("t").then(Boolean, () => false);
      assert.equal(await outcome(), authenticated);
      now = lasts - 1;
      assert.equal(await outcome(), authenticated);
      assert.equal(reviewer.asked, 1);
      now = lasts;
      assert.equal(await outcome(), authenticated);
      assert.equal(reviewer.asked, 2);
    }
  });

  test("a flood of unknown tokens is turned away before it is checked", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const reviewer = review({ authenticated: false }, () => promise);
    const authenticate = tokenReviewer(reviewer.client, "tracegate");
    const all = Array.from({ length: 700 }, (_, i) => authenticate(`t${i}`).catch((error: unknown) => error));
    const temporary = (await Promise.all(all.slice(500))).filter(
      (error) => error instanceof AuthError && error.temporary,
    );
    assert.equal(temporary.length, 200);
    assert.equal(reviewer.asked, 500);
    resolve();
    await Promise.all(all);
  });
});

/** A reviewer that remembers nothing. */
function unremembered(api: TestApiServer): Authenticate {
  const client = api.client();
  return (token) => tokenReviewer(client, "tracegate")(token);
}

/** From now on all requests fail; returns how many have. */
function brokenFromNow(api: TestApiServer): () => number {
  let tried = 0;
  api.intercept = () => {
    tried++;
    throw new Error("out of order");
  };
  return () => tried;
}

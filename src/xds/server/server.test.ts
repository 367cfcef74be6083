import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { until } from "../../../test/helpers/until.ts";
import { GATEWAY, stateOf, TestXdsServer } from "../../../test/helpers/xds.ts";
import { NODE, XdsPeer } from "../../../test/helpers/xds-peer.ts";
import { ADDRESS_TYPE, fleetOfClass, type GatewayState, RESOURCE_TYPE } from "../resources.ts";
import { AuthError } from "./authenticator.ts";

interface Shape {
  readonly routes?: readonly string[];
  /** Addresses of the workloads of a service. */
  readonly workloads?: readonly string[];
}

function tokenFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-token-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const token = join(folder, "token");
  writeFileSync(token, "token");
  return token;
}

/** `big`: bytes that each route has besides. */
function shaped({ routes = ["r"], workloads }: Shape, before?: GatewayState, big = 0): GatewayState {
  const policies = { directResponse: { status: 200, body: "x".repeat(big) } };
  const service = { name: "s", namespace: "ns", hostname: "s.ns", vips: [], ports: { 80: 8080 } };
  const config = {
    binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes: routes.map((name) => ({ name, policies })) }] }],
    ...(workloads !== undefined && {
      services: [service],
      workloads: workloads.map((ip) => ({
        uid: ip,
        name: ip,
        namespace: "ns",
        workloadIps: [ip],
        services: { "ns/s.ns": { 80: 8080 } },
      })),
    }),
  };
  return stateOf(config, before);
}

const names = (resources: readonly { readonly name: string }[]): string[] => resources.map(({ name }) => name);

suite("the stream server", () => {
  test("a proxy waits for the first state of its Gateway, and gets changes only", async () => {
    await using test = await TestXdsServer.start();
    using peer = new XdsPeer({ address: test.address });
    await until(() => test.server.proxies.length === 1, "the proxy");
    const one = shaped({ routes: ["a", "b"] });
    test.server.publish("ns/other", shaped({ routes: ["secret"] }));
    test.server.publish(GATEWAY, one);
    const first = await peer.batch();
    assert.deepEqual([...peer.known[RESOURCE_TYPE].keys()].sort(), [...one.resources.keys()].sort());
    peer.answer(first);
    await until(() => test.server.proxies[0]?.synchronized === true, "the acknowledgement");
    test.server.publish(GATEWAY, shaped({ routes: ["a", "c"] }, one));
    const second = await peer.batch();
    assert.equal(second.length, 1);
    assert.match(names(second[0]?.resources ?? []).join(), /^route\/[^,]*\/c$/);
    assert.match((second[0]?.removed ?? []).join(), /^route\/[^,]*\/b$/);
  });

  test("a preview has what differs from what the proxy runs, for proxies of its Gateway alone, and is no state of theirs", async (t) => {
    const reported: unknown[] = [];
    await using test = await TestXdsServer.start({ onProxy: (status) => reported.push(status) });
    const one = shaped({ routes: ["a", "b"] });
    test.server.publish(GATEWAY, one);
    using peer = new XdsPeer({ address: test.address });
    peer.answer(await peer.batch());
    await until(() => test.server.proxies[0]?.synchronized === true, "the acknowledgement");
    const { proxies } = test.server;
    reported.length = 0;
    test.server.keepPreview("p1", GATEWAY, shaped({ routes: ["a", "c"] }, one));
    const asking = (preview: string, gateway = "gw"): XdsPeer =>
      new XdsPeer(
        { address: test.address },
        { ...NODE, metadata: { ...NODE.metadata, GATEWAY: gateway, PREVIEW: preview } },
        peer.known,
      );
    using asks = asking("p1");
    const [response, ...more] = await asks.batch();
    assert.deepEqual(more, []);
    assert.match(names(response?.resources ?? []).join(), /^route\/[^,]*\/c$/);
    assert.match((response?.removed ?? []).join(), /^route\/[^,]*\/b$/);
    assert.deepEqual([test.server.proxies, reported], [proxies, []]);
    test.server.publish(GATEWAY, shaped({ routes: ["a", "d"] }, one));
    assert.match(names((await peer.batch()).flatMap(({ resources }) => resources)).join(), /\/d$/);
    assert.equal(asks.responses.length, 1);
    using stranger = asking("p1", "other");
    assert.match(await stranger.end(), /the preview is not kept any more/);
    for (let i = 2; i < 10; i++) test.server.keepPreview(`p${i}`, GATEWAY, one);
    using pushedOut = asking("p1");
    assert.match(await pushedOut.end(), /the preview is not kept any more/);
    t.mock.timers.enable({ apis: ["setTimeout"] });
    test.server.keepPreview("short", GATEWAY, one);
    t.mock.timers.tick(2 * 60_000);
    t.mock.timers.reset();
    using late = asking("short");
    assert.match(await late.end(), /the preview is not kept any more/);
  });

  test("addresses are sent before the resources that need them, and removed after them", async () => {
    await using test = await TestXdsServer.start();
    using peer = new XdsPeer({ address: test.address });
    const plain = shaped({});
    test.server.publish(GATEWAY, plain);
    peer.answer(await peer.batch());
    const full = shaped({ routes: ["r", "s"], workloads: ["10.0.0.1"] }, plain);
    test.server.publish(GATEWAY, full);
    const added = await peer.batch();
    assert.deepEqual(
      added.map(({ typeUrl, version }) => [typeUrl, version !== ""]),
      [
        [ADDRESS_TYPE, false],
        [RESOURCE_TYPE, true],
      ],
    );
    peer.answer(added);
    test.server.publish(GATEWAY, plain);
    const removed = await peer.batch();
    assert.deepEqual(
      removed.map(({ typeUrl, removed: gone }) => [typeUrl, gone.length]),
      [
        [RESOURCE_TYPE, 1],
        [ADDRESS_TYPE, 2],
      ],
    );
  });

  test("a large state comes in several responses of bounded size, of which the last completes it", async () => {
    await using test = await TestXdsServer.start();
    using peer = new XdsPeer({ address: test.address });
    const routes = Array.from({ length: 40 }, (_, i) => `r${i}`);
    test.server.publish(GATEWAY, shaped({ routes }, undefined, 50_000));
    const batch = await peer.batch();
    assert.ok(batch.length >= 4, `${batch.length} responses`);
    for (const { resources } of batch) {
      const size = resources.reduce((sum, { payload }) => sum + payload.length, 0);
      assert.ok(size < 600_000, `${size} bytes`);
    }
    assert.deepEqual(batch.map(({ version }) => version !== "").indexOf(true), batch.length - 1);
    assert.equal(peer.known[RESOURCE_TYPE].size, 42);
  });

  test("a slow proxy gets the newest state, not every one in between", async () => {
    await using test = await TestXdsServer.start();
    using peer = new XdsPeer({ address: test.address });
    let state = shaped({ routes: ["r0"] });
    test.server.publish(GATEWAY, state);
    const first = await peer.batch();
    for (let i = 1; i <= 50; i++) {
      state = shaped({ routes: [`r${i}`] }, state);
      test.server.publish(GATEWAY, state);
    }
    assert.equal(peer.responses.length, first.length);
    peer.answer(first);
    const second = await peer.batch();
    assert.match(names(second.flatMap(({ resources }) => resources)).join(), /^route\/[^,]*\/r50$/);
    assert.match(second.flatMap(({ removed }) => removed).join(), /^route\/[^,]*\/r0$/);
    peer.answer(second);
    await until(() => test.server.proxies[0]?.synchronized === true, "the acknowledgement");
    assert.equal(peer.responses.length, first.length + second.length);
  });

  test("a proxy that resumes at another replica gets only what it lacks", async () => {
    await using one = await TestXdsServer.start();
    await using other = await TestXdsServer.start();
    using before = new XdsPeer({ address: one.address });
    one.server.publish(GATEWAY, shaped({ routes: ["a", "b"], workloads: ["10.0.0.1"] }));
    const [{ version } = { version: "" }] = (await before.batch()).slice(-1);
    // Made anew: the objects of another process.
    other.server.publish(GATEWAY, shaped({ routes: ["a", "b"], workloads: ["10.0.0.1"] }));
    using same = new XdsPeer({ address: other.address }, NODE, before.known);
    const nothing = await same.batch();
    assert.deepEqual(
      nothing.map((response) => [response.resources.length, response.removed.length, response.version]),
      [[0, 0, version]],
    );
    other.server.publish(GATEWAY, shaped({ routes: ["a", "c"], workloads: ["10.0.0.2"] }));
    using later = new XdsPeer({ address: other.address }, NODE, before.known);
    const lacking = await later.batch();
    assert.deepEqual(
      names(lacking.flatMap(({ resources }) => resources)).map((name) => name.split("/").at(-1)),
      ["10.0.0.2", "c"],
    );
    assert.deepEqual(
      lacking.flatMap(({ removed }) => removed).map((name) => name.split("/").at(-1)),
      ["b", "10.0.0.1"],
    );
  });

  test("a rejection is known with its reason until the proxy succeeds", async () => {
    const seen: string[] = [];
    await using test = await TestXdsServer.start({
      onProxy: ({ rejection }, connected) => seen.push(connected ? (rejection?.message ?? "") : "left"),
    });
    using peer = new XdsPeer({ address: test.address });
    test.server.publish(GATEWAY, shaped({}));
    const first = await peer.batch();
    peer.answer(first, "port 80 is taken");
    await until(() => test.server.proxies[0]?.rejection !== null, "the rejection");
    const [proxy] = test.server.proxies;
    assert.equal(proxy?.rejection?.message, "port 80 is taken");
    assert.equal(proxy?.acknowledged, "");
    assert.equal(proxy?.synchronized, false);
    assert.equal(metric(test, "tracegate_xds_rejects_total"), 1);
    // A retry that succeeds answers the same responses once more.
    peer.answer(first);
    await until(() => test.server.proxies[0]?.synchronized === true, "the success");
    assert.equal(test.server.proxies[0]?.rejection, null);
    peer.close();
    await until(() => test.server.proxies.length === 0, "the end of the stream");
    assert.ok(seen.includes("port 80 is taken"));
    assert.equal(seen.at(-1), "left");
  });

  test("a state that a proxy rejects for some of its Gateways is acknowledged for the others", async () => {
    const seen: (readonly string[] | undefined)[] = [];
    await using test = await TestXdsServer.start({
      onProxy: (_proxy, _connected, gateways) => {
        if (seen.at(-1) !== gateways) seen.push(gateways);
      },
    });
    using proxy = new XdsPeer({ address: test.address });
    test.server.publish(GATEWAY, shaped({}), ["a/web", "b/web"]);
    const batch = await proxy.batch();
    const heldBack = ["b/web", "c/unknown"].map((gateway) => ({ gateway, reason: "no such cipher" }));
    proxy.answer(batch, "not all of it", heldBack);
    await until(() => test.server.proxies[0]?.rejection !== null, "the rejection");
    const [status] = test.server.proxies;
    assert.deepEqual(status?.rejection?.heldBack, heldBack.slice(0, 1));
    assert.equal(status?.acknowledged, status?.sent);
    assert.equal(status?.synchronized, false);
    assert.deepEqual(seen.at(-1), ["a/web"]);
    proxy.answer(batch);
    await until(() => test.server.proxies[0]?.synchronized === true, "the repeat");
    assert.deepEqual(seen.at(-1), ["a/web", "b/web"]);
  });

  test("a rejected state is not sent again: the proxy has received it", async () => {
    await using test = await TestXdsServer.start();
    using peer = new XdsPeer({ address: test.address });
    const one = shaped({ routes: ["a", "b"] });
    test.server.publish(GATEWAY, one);
    peer.answer(await peer.batch());
    const two = shaped({ routes: ["a", "b", "c"] }, one);
    test.server.publish(GATEWAY, two);
    peer.answer(await peer.batch(), "no room for c");
    test.server.publish(GATEWAY, shaped({ routes: ["a", "b", "c", "d"] }, two));
    const third = await peer.batch();
    assert.deepEqual(
      names(third.flatMap(({ resources }) => resources)).map((name) => name.split("/").at(-1)),
      ["d"],
    );
  });

  test("endless rejections change the status only a few times, and their reasons are bounded", async () => {
    const reasons = new Set<string>();
    await using test = await TestXdsServer.start({
      onProxy: ({ rejection }) => rejection !== null && reasons.add(rejection.message),
    });
    using peer = new XdsPeer({ address: test.address });
    test.server.publish(GATEWAY, shaped({}));
    const first = await peer.batch();
    for (let i = 0; i < 100; i++) peer.answer(first, `${i} ${"x".repeat(100_000)}`);
    await until(() => metric(test, "tracegate_xds_rejects_total") === 100, "all rejections");
    assert.equal(reasons.size, 10);
    for (const each of reasons) assert.equal(each.length, 1001);
    // The next state starts anew.
    test.server.publish(GATEWAY, shaped({ routes: ["other"] }));
    peer.answer(await peer.batch(), "for another reason");
    await until(() => test.server.proxies[0]?.rejection?.message === "for another reason", "the rejection");
  });

  test("a message that is too large ends its stream, and no other", async () => {
    await using test = await TestXdsServer.start();
    using good = new XdsPeer({ address: test.address });
    using bad = new XdsPeer({ address: test.address });
    test.server.publish(GATEWAY, shaped({}));
    bad.answer(await bad.batch(), "x".repeat(9 * 1024 * 1024));
    assert.match(await bad.end(), /^gRPC status 8: /);
    good.answer(await good.batch());
    await until(() => test.server.proxies[0]?.synchronized === true, "the acknowledgement");
    assert.equal(test.server.proxies.length, 1);
  });

  test("a proxy that has lost access is disconnected, whatever it sent before it learned of that", async (t) => {
    const token = tokenFile(t);
    const revoked = Promise.withResolvers<never>();
    revoked.promise.catch(() => {});
    let asked = 0;
    const seen: string[] = [];
    await using test = await TestXdsServer.start({
      authenticate: async () =>
        asked++ === 0 ? { namespace: "ns", serviceAccount: "gw", pod: "gw-1" } : revoked.promise,
      recheck: 1,
      onProxy: ({ rejection }, connected) => {
        seen.push(connected ? (rejection?.message ?? "") : "left");
        // While further messages of the proxy wait to be read.
        if (rejection !== null && connected) revoked.reject(new AuthError("the ServiceAccount is gone"));
      },
    });
    using peer = new XdsPeer({ address: test.address, token });
    await until(() => asked > 1, "the check of the token");
    test.server.publish(GATEWAY, shaped({}));
    const first = await peer.batch();
    for (let i = 0; i < 10; i++) peer.answer(first, `reason ${i}`);
    assert.match(await peer.end(), /the ServiceAccount is gone/);
    assert.equal(seen.at(-1), "left");
    assert.deepEqual(test.server.proxies, []);
  });

  test("a shutdown ends streams gracefully", async () => {
    const test = await TestXdsServer.start();
    using peer = new XdsPeer({ address: test.address });
    test.server.publish(GATEWAY, shaped({}));
    await peer.batch();
    await test.server.close();
    assert.match(await peer.end(), /the controller/);
    assert.deepEqual(test.server.proxies, []);
  });

  test("shared proxies get the state of their class, and say which of its Gateways they run", async (t) => {
    const token = tokenFile(t);
    const gateways: (readonly string[] | undefined)[] = [];
    const account = { namespace: "infra", serviceAccount: "shared" };
    await using test = await TestXdsServer.start({
      authenticate: async () => ({ ...account, pod: "shared-1" }),
      accountOf: () => account,
      onProxy: (_proxy, _connected, running) => gateways.push(running),
    });
    const shared = fleetOfClass("shared");
    test.server.publish(shared, shaped({}), []);
    const metadata = { NAMESPACE: "not that of the pod", GATEWAY_CLASS: "shared", POD_NAME: "shared-1" };
    using peer = new XdsPeer({ address: test.address, token }, { ...NODE, metadata });
    const first = await peer.batch();
    // Another Gateway without resources changes no version.
    test.server.publish(shared, shaped({}), ["a/web"]);
    peer.answer(first);
    await until(() => isDeepStrictEqual(gateways.at(-1), ["a/web"]), "the first");
    test.server.publish(shared, shaped({}), ["a/web", "b/web"]);
    assert.deepEqual(gateways.at(-1), ["a/web", "b/web"]);
    test.server.publish(shared, shaped({ routes: ["other"] }), ["a/web"]);
    const batch = await peer.batch();
    assert.deepEqual(gateways.at(-1), ["a/web", "b/web"], "it has not acknowledged the next state yet");
    peer.answer(batch);
    await until(() => isDeepStrictEqual(gateways.at(-1), ["a/web"]), "the next");
    assert.deepEqual(
      test.server.proxies.map(({ gateway, namespace }) => [gateway, namespace]),
      [["GatewayClass/shared", "infra"]],
    );
  });

  test("a proxy that does not identify itself is rejected", async () => {
    await using test = await TestXdsServer.start();
    using peer = new XdsPeer({ address: test.address }, { ...NODE, metadata: {} });
    assert.match(await peer.end(), /^gRPC status 3: the node's metadata must name NAMESPACE and GATEWAY/);
  });
});

function metric({ server }: TestXdsServer, name: string): number {
  return Number(server.metrics().find((each) => each.name === name)?.samples[0]?.value);
}

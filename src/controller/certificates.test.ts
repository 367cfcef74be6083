import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { type Identity, noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import type { Gateway, GatewayClass, Secret } from "../kube/objects.ts";
import { Certificates } from "./certificates.ts";
import { Graph } from "./graph/graph.ts";
import { keptCertificates } from "./kept-certificates.ts";
import { ReconcileMetrics } from "./metrics.ts";
import { objectSnapshot } from "./snapshots.ts";
import { Syncer } from "./syncer.ts";
import { gatewayModel } from "./translate/listeners/gateways.ts";

const API = "gateway.networking.k8s.io/v1";
const CLASS: GatewayClass = {
  apiVersion: API,
  kind: "GatewayClass",
  metadata: { name: "tracegate", namespace: "" },
  spec: { controllerName: "tracegate.dev/gateway-controller" },
};
const GATEWAY: Gateway = {
  apiVersion: API,
  kind: "Gateway",
  metadata: { namespace: "apps", name: "web" },
  spec: {
    gatewayClassName: "tracegate",
    listeners: [{ name: "https", port: 443, protocol: "HTTPS", tls: { certificateRefs: [{ name: "web" }] } }],
  },
};

function secretOf({ cert, key }: Pick<Identity, "cert" | "key">, labels: Record<string, string> = {}): Secret {
  const encoded = (text: string): string => Buffer.from(text).toString("base64");
  const data = { "tls.crt": encoded(cert), "tls.key": encoded(key) };
  return { apiVersion: "v1", kind: "Secret", metadata: { namespace: "apps", name: "web", uid: "1", labels }, data };
}

suite("certificates of Secrets", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let one: Identity;
  let two: Identity;
  let expired: Identity;
  let graph: Graph;
  let certificates: Certificates;
  let lines: string[];

  before(() => {
    ca = new TestCa();
    one = ca.issue("a.example");
    two = ca.issue("a.example");
    expired = ca.issueExpired("a.example");
  });
  after(() => ca[Symbol.dispose]());
  beforeEach(() => restart([]));

  /** A controller that reads these Secrets first. */
  function restart(secrets: readonly Secret[]): void {
    graph = new Graph();
    graph.set(CLASS);
    graph.set(GATEWAY);
    certificates = follow();
    for (const secret of secrets) certificates.set(secret);
  }

  function follow(): Certificates {
    lines = [];
    const log = new LogOutput(parseLogFilter("info"), "text", (line) => lines.push(line)).logger("default");
    const nothing = (): void => {};
    const syncer = new Syncer({ graph, publish: nothing, write: nothing, metrics: new ReconcileMetrics(), log });
    return new Certificates({ graph, syncer, log });
  }

  /** What proxies serve, and what the status of the listener says about the reference. */
  function served(): { cert: string | undefined; message: string | undefined } {
    const [listener] = graph.query(gatewayModel, "apps/web")?.listeners ?? [];
    const { tls } = listener ?? {};
    return {
      cert: tls === "passthrough" ? undefined : tls?.cert,
      message: listener?.conditions.find(({ type }) => type === "ResolvedRefs")?.message,
    };
  }

  test("replace each other", () => {
    certificates.set(secretOf(one));
    certificates.set(secretOf(two));
    assert.deepEqual(served(), { cert: two.cert, message: "All references are resolved" });
    assert.deepEqual(lines, []);
  });

  test("stay while their replacement cannot be used, until one can", () => {
    certificates.set(secretOf(one));
    for (const [bad, reason] of [
      [{ ...two, key: one.key }, /tls.key is not the private key of the certificate in tls.crt/],
      [{ ...two, cert: "hello" }, /tls.crt is not a certificate in PEM/],
      [expired, /tls.crt: the certificate expired at 2\d{3}-/],
    ] as const) {
      lines = [];
      certificates.set(secretOf(bad));
      assert.equal(served().cert, one.cert);
      assert.match(served().message ?? "", reason);
      assert.match(served().message ?? "", /^Secret apps\/web: .*; the former certificate stays in use$/);
      assert.equal(lines.length, 1);
      assert.match(lines[0] ?? "", reason);
    }
    certificates.set(secretOf(two));
    assert.deepEqual(served(), { cert: two.cert, message: "All references are resolved" });
  });

  test("are known from a copy to a controller that starts while the Secret cannot be used; the copy is deleted when it is not needed", () => {
    certificates.set(secretOf(one));
    assert.deepEqual(graph.query(keptCertificates, ""), { missing: [], superfluous: [] });
    certificates.set(secretOf(expired));
    const [copy, ...others] = graph.query(keptCertificates, "").missing;
    assert.ok(copy !== undefined && others.length === 0);
    certificates.set(copy);
    assert.deepEqual(graph.query(keptCertificates, ""), { missing: [], superfluous: [] });

    restart([secretOf(expired), copy]);
    assert.equal(served().cert, one.cert);
    assert.match(served().message ?? "", /expired at .*; the former certificate stays in use$/);
    assert.deepEqual(graph.query(keptCertificates, ""), { missing: [], superfluous: [] });
    certificates.set(secretOf(two));
    assert.equal(served().cert, two.cert);
    assert.deepEqual(graph.query(keptCertificates, "").superfluous, [`apps/${copy.metadata.name}`]);

    // Another Secret of that name, or one that can be used, has no use for it.
    restart([{ ...secretOf(expired), metadata: { ...secretOf(expired).metadata, uid: "2" } }, copy]);
    assert.equal(served().cert, expired.cert);
    restart([secretOf(two), copy]);
    assert.equal(served().cert, two.cert);
    assert.deepEqual(graph.query(keptCertificates, "").superfluous, [`apps/${copy.metadata.name}`]);
  });

  test("are not taken from other users' Secrets that look like copies, and such Secrets are not deleted", () => {
    certificates.set(secretOf(one));
    certificates.set(secretOf(expired));
    const [copy] = graph.query(keptCertificates, "").missing;
    assert.ok(copy !== undefined);
    restart([secretOf(expired), { ...copy, metadata: { ...copy.metadata, labels: {} } }]);
    assert.equal(served().cert, expired.cert);
    assert.deepEqual(graph.query(keptCertificates, ""), { missing: [], superfluous: [] });
  });

  test("that no Gateway uses are not copied", () => {
    graph.delete("Gateway", "apps/web");
    certificates.set(secretOf(one));
    certificates.set(secretOf(expired));
    assert.deepEqual(graph.query(keptCertificates, "").missing, []);
  });

  test("are not shown by the admin server", () => {
    certificates.set(secretOf(one));
    certificates.set(secretOf(expired));
    const shown = JSON.stringify(objectSnapshot(graph));
    assert.match(shown, /FormerCertificate/);
    assert.doesNotMatch(shown, /PRIVATE KEY/);
  });

  test("are removed with their Secret", () => {
    certificates.set(secretOf(one));
    certificates.set(secretOf(expired));
    certificates.delete("Secret", "apps/web");
    assert.deepEqual(served(), { cert: undefined, message: "Secret apps/web does not exist" });
    // Nothing of it is left for another of that name.
    certificates.set(secretOf(expired));
    assert.equal(served().cert, expired.cert);
  });

  test("that have expired serve if there is no other, and do not block other changes", (t) => {
    certificates.set(secretOf(expired));
    assert.equal(served().cert, expired.cert);
    assert.match(served().message ?? "", /expired at .*, clients will reject it; renew it$/);
    certificates.set(secretOf(expired, { changed: "yes" }));
    assert.match(served().message ?? "", /renew it$/);

    // Time passes.
    t.mock.timers.enable({ apis: ["setInterval", "Date"], now: Date.now() });
    certificates = follow();
    certificates.set(secretOf(one));
    assert.equal(served().message, "All references are resolved");
    certificates.set(secretOf({ ...one, key: two.key }));
    t.mock.timers.tick(3 * 24 * 3600 * 1000);
    certificates.set(secretOf(one));
    assert.equal(served().cert, one.cert);
    assert.match(served().message ?? "", /expired at .*; renew it$/);
  });
});

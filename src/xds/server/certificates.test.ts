import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { TestApiServer } from "../../../test/helpers/kube/api-server.ts";
import { GATEWAY, stateOf, TestXdsServer } from "../../../test/helpers/xds.ts";
import { XdsPeer } from "../../../test/helpers/xds-peer.ts";
import { LogOutput } from "../../base/log.ts";
import { parseLogFilter } from "../../base/log-filter.ts";
import { resourcePath } from "../../kube/client.ts";
import { RESOURCES } from "../../kube/resources.ts";
import { CERTIFICATE_SECRET, XdsCertificates } from "./certificates.ts";

const log = new LogOutput(parseLogFilter("off"), "text", () => {}).logger("xds");
const YEAR = 365 * 24 * 3_600_000;
const folder = mkdtempSync(join(tmpdir(), "tracegate-xds-"));
after(() => rmSync(folder, { recursive: true }));
const STATE = stateOf({ binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes: [{ name: "r" }] }] }] });
const SECRET = resourcePath(RESOURCES.Secret, "system", CERTIFICATE_SECRET);

/** Proxies of the tests connect to localhost, so that is the name of the Service. */
function certificatesOf(api: TestApiServer, now?: () => number): XdsCertificates {
  const options = { client: api.client(), namespace: "system", service: "localhost", log };
  return new XdsCertificates({ ...options, ...(now !== undefined && { now }) });
}

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

suite("TLS of the stream", () => {
  test("proxies that trust the CA connect, others do not", async () => {
    await using api = await TestApiServer.start();
    const certificates = certificatesOf(api);
    await certificates.start();
    await using server = await TestXdsServer.start({ credentials: certificates.credentials });
    server.server.publish(GATEWAY, STATE);
    const address = `https://localhost:${server.port}`;
    using trusting = new XdsPeer({ address, rootCa: file("ca", certificates.ca ?? "") });
    assert.equal((await trusting.batch()).length, 1);
    using other = new XdsPeer({ address });
    assert.match(await other.end(), /self-signed certificate/);
    certificates.close();
  });

  test("replicas share one CA, which is restored as it was when its Secret is deleted", async () => {
    await using api = await TestApiServer.start();
    const replicas = [certificatesOf(api), certificatesOf(api)];
    await Promise.all(replicas.map((each) => each.start()));
    const [one, other] = replicas;
    const ca = one?.ca;
    assert.ok(one !== undefined && ca !== undefined);
    assert.equal(other?.ca, ca);
    await api.client().request("DELETE", SECRET);
    assert.equal(await one.check(), true);
    assert.equal(await other?.check(), true);
    const restarted = certificatesOf(api);
    await restarted.start();
    assert.equal(restarted.ca, ca);
    for (const each of [...replicas, restarted]) each.close();
  });

  test("of several replicas that replace a damaged Secret at once, one wins", async () => {
    await using api = await TestApiServer.start();
    const metadata = { namespace: "system", name: CERTIFICATE_SECRET };
    api.set({ apiVersion: "v1", kind: "Secret", metadata, data: { "tls.crt": "bm90aGluZw==" } } as never);
    const both = Promise.withResolvers<void>();
    let puts = 0;
    api.intercept = ({ method }) => {
      if (method !== "PUT") return undefined;
      if (++puts === 2) both.resolve();
      return both.promise;
    };
    const replicas = [certificatesOf(api), certificatesOf(api)];
    await Promise.all(replicas.map((each) => each.start()));
    const [one, other] = replicas;
    assert.ok(one?.ca !== undefined);
    assert.equal(other?.ca, one.ca);
    for (const each of replicas) each.close();
  });

  test("the certificate is renewed without a restart, and the CA while the former one is still trusted", async () => {
    await using api = await TestApiServer.start();
    let now = Date.now();
    const bundles: string[] = [];
    const certificates = new XdsCertificates({
      client: api.client(),
      namespace: "system",
      service: "localhost",
      log,
      now: () => now,
      onCa: (bundle) => bundles.push(bundle),
    });
    await certificates.start();
    const served = (): string =>
      new X509Certificate(String(certificates.credentials._getSecureContextOptions()?.cert)).serialNumber;
    const first = served();
    now += 11 * 3_600_000;
    await certificates.check();
    assert.equal(served(), first);
    now += 2 * 3_600_000;
    await certificates.check();
    assert.notEqual(served(), first);
    assert.equal(bundles.length, 1);
    now += 10 * YEAR - 30 * 24 * 3_600_000;
    await certificates.check();
    assert.equal(bundles.length, 2);
    assert.ok(bundles[1]?.endsWith(bundles[0] ?? "?"));
    certificates.close();
  });

  test("without the API server the known CA still signs", async () => {
    await using api = await TestApiServer.start();
    let now = Date.now();
    const certificates = certificatesOf(api, () => now);
    await certificates.start();
    const served = (): unknown => certificates.credentials._getSecureContextOptions()?.cert;
    const first = served();
    await api.stop();
    now += 13 * 3_600_000;
    assert.equal(await certificates.check(), false);
    assert.notEqual(served(), first);
    certificates.close();
  });
});

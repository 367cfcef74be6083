import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { AcmeTestServer } from "../../test/helpers/acme-server.ts";
import { noOpenssl } from "../../test/helpers/certificates.ts";
import { until } from "../../test/helpers/until.ts";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { OwnSockets } from "../base/own-sockets.ts";
import { Egress, NO_LOOKUP_RULES } from "../net/egress.ts";
import { makeSelfSigned } from "../tls/x509/self-signed.ts";
import { type Fetch, fetchThrough } from "../upstream/callouts/fetch.ts";
import { Resolver } from "../upstream/resolve/resolver.ts";
import { Certificates } from "./certificates.ts";
import { PendingChallenges } from "./challenges.ts";
import { certificateFile, lockFile, stateFile } from "./layout.ts";
import type { ManagedCertificate } from "./settings.ts";
import { type CertificateState, readState } from "./state.ts";

const NAME = "shop.example";
const PACE = { firstPause: 60_000, heldPause: 20 };

/** A server, a storage, and an HTTP server that answers validations as workers do. */
class Scene implements AsyncDisposable {
  readonly storage = mkdtempSync(join(tmpdir(), "tracegate-acme-"));
  readonly server: AcmeTestServer;
  readonly lines: string[] = [];
  readonly #http = createServer((request, response) => {
    void Promise.resolve(this.#pending.answerHttp(request.method ?? "", request.url ?? "")).then((reply) => {
      response.writeHead(reply?.status ?? 404).end(reply?.body);
    });
  });
  readonly #pending = new PendingChallenges([this.storage]);
  readonly #opened: Certificates[] = [];

  private constructor(server: AcmeTestServer) {
    this.server = server;
  }

  static async start(): Promise<Scene> {
    const scene = new Scene(await AcmeTestServer.start());
    scene.#http.listen(0, "127.0.0.1");
    await once(scene.#http, "listening");
    scene.server.faults.httpPort = (scene.#http.address() as AddressInfo).port;
    return scene;
  }

  certificate(name = NAME, more: Partial<ManagedCertificate["settings"]> = {}): ManagedCertificate {
    const { directory, authority } = this.server;
    return {
      name,
      settings: { directory, root: authority.cert, storage: this.storage, challenge: "http-01", ...more },
    };
  }

  /** A process with this storage. */
  process(pace = PACE): Certificates {
    const log = new LogOutput(parseLogFilter("info"), "text", (line) => this.lines.push(line)).logger("acme");
    const egress = new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES }, new OwnSockets());
    const made = new Certificates(fetchThrough(new Resolver("All", egress)), log, pace);
    this.#opened.push(made);
    return made;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#opened.map((each) => each.close()));
    this.#http.closeAllConnections();
    this.#http.close();
    await this.server[Symbol.asyncDispose]();
    rmSync(this.storage, { recursive: true, force: true });
  }
}

/** What the storage has. */
function stored({ settings, name }: ManagedCertificate): X509Certificate {
  const text = readFileSync(certificateFile(settings, name), "utf8");
  return new X509Certificate(text.slice(text.indexOf("-----BEGIN CERTIFICATE-----")));
}

const steps = (process: Certificates, certificate: ManagedCertificate) => process.stepOf(certificate)?.step;

test("a certificate is ordered, although nonces are rejected; only its owner can read it", {
  skip: noOpenssl,
}, async () => {
  await using scene = await Scene.start();
  scene.server.faults.rejectedNonces = 5;
  const certificate = scene.certificate();
  const process = scene.process();
  process.follow([certificate]);
  await until(() => steps(process, certificate) === "renew", "the certificate");
  assert.equal(stored(certificate).checkHost(NAME), NAME);
  const file = certificateFile(certificate.settings, NAME);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(statSync(dirname(file)).mode & 0o777, 0o700);
  assert.match(readFileSync(file, "utf8"), /^-----BEGIN PRIVATE KEY-----/);
  const renewal = process.stepOf(certificate)?.at ?? 0;
  const { validFromDate, validToDate } = stored(certificate);
  const share = (renewal - validFromDate.getTime()) / (validToDate.getTime() - validFromDate.getTime());
  assert.ok(share >= 2 / 3 && share < 0.72, `${share}`);
});

test("a start with many certificates opens few of their files at a time", async () => {
  await using scene = await Scene.start();
  const wanted = Array.from({ length: 400 }, (_, i) => scene.certificate(`n${i}.example`));
  const { cert, key } = makeSelfSigned("n.example", Date.now());
  for (const { settings, name } of wanted) {
    mkdirSync(dirname(certificateFile(settings, name)), { recursive: true });
    writeFileSync(certificateFile(settings, name), `${key}${cert}`);
  }
  const process = scene.process();
  const open = (): number => readdirSync("/dev/fd").length;
  const before = open();
  let most = 0;
  process.follow(wanted);
  while (wanted.some((each) => steps(process, each) !== "renew")) {
    most = Math.max(most, open());
    await nextTurn();
  }
  assert.ok(most < before + 100, `${most - before} files`);
});

test("processes that share a storage place one order for each name, in one account", { skip: noOpenssl }, async () => {
  await using scene = await Scene.start();
  const wanted = ["a.example", "b.example", "c.example"].map((name) => scene.certificate(name));
  const processes = [scene.process(), scene.process(), scene.process()];
  for (const each of processes) each.follow(wanted);
  const done = () => processes.every((each) => wanted.every((certificate) => steps(each, certificate) === "renew"));
  await until(done, "all certificates in all processes");
  assert.deepEqual(scene.server.orders.map(({ name }) => name).sort(), ["a.example", "b.example", "c.example"]);
  assert.equal(scene.server.accounts, 1);
});

test("a server that is overloaded is left alone as long as it says, also after a restart", {
  skip: noOpenssl,
}, async () => {
  await using scene = await Scene.start();
  scene.server.faults.refusedOrders = { count: 1, type: "rateLimited", retryAfter: 7200 };
  const certificate = scene.certificate();
  const first = scene.process();
  first.follow([certificate]);
  await until(() => steps(first, certificate) === "retry", "the failure");
  await first.close();
  const second = scene.process();
  second.follow([certificate]);
  await until(() => second.stepOf(certificate)?.failure !== undefined, "the failure of the former process");
  const { failure, at = 0 } = second.stepOf(certificate) ?? {};
  assert.match(failure?.message ?? "", /^rateLimited: slow down$/);
  assert.ok(at - Date.parse(failure?.at ?? "") >= 7200_000);
  assert.equal(scene.server.orders.length, 0);
  assert.match(scene.lines.join("\n"), /no certificate was issued.*rateLimited/);
});

test("the failure of a validation says what the server saw, and is tried again", { skip: noOpenssl }, async () => {
  await using scene = await Scene.start();
  const right = scene.server.faults.httpPort;
  const other = createServer((_request, response) => response.end("not me")).listen(0, "127.0.0.1");
  await once(other, "listening");
  scene.server.faults.httpPort = (other.address() as AddressInfo).port;
  const certificate = scene.certificate();
  const first = scene.process();
  first.follow([certificate]);
  await until(() => steps(first, certificate) === "retry", "the failure");
  assert.match(
    first.stepOf(certificate)?.failure?.message ?? "",
    /^the validation of shop\.example failed: unauthorized: got 200 not me/,
  );
  await first.close();
  other.close();
  scene.server.faults.httpPort = right;
  // As if the pause were over.
  const { failure, ...rest } = await readState(certificate);
  assert.ok(failure !== undefined);
  const due: CertificateState = { ...rest, failure: { ...failure, retryAt: 0 } };
  writeFileSync(stateFile(certificate.settings, NAME), JSON.stringify(due));
  const second = scene.process();
  second.follow([certificate]);
  await until(() => steps(second, certificate) === "renew", "the certificate");
  assert.equal(second.stepOf(certificate)?.failure, undefined);
});

test("a certificate is renewed when the server suggests it, and the order says what it replaces", {
  skip: noOpenssl,
}, async () => {
  await using scene = await Scene.start();
  const certificate = scene.certificate();
  const first = scene.process();
  const hour = 60 * 60_000;
  scene.server.faults.window = [Date.now() + 20 * hour, Date.now() + 30 * hour];
  first.follow([certificate]);
  await until(() => steps(first, certificate) === "renew", "the first certificate");
  const { at = 0 } = first.stepOf(certificate) ?? {};
  // Not before a hundredth of its 90 days, and by the suggestion instead of two thirds.
  assert.ok(at >= Date.now() + 20 * hour && at <= Date.now() + 30 * hour, new Date(at).toISOString());
  await first.close();
  const before = stored(certificate);
  // A certificate of which 1 % has passed, which the server now wants to be replaced.
  scene.server.faults.window = [Date.now() - 2 * hour, Date.now() - hour];
  const { renewal } = await readState(certificate);
  assert.ok(renewal !== undefined);
  scene.server.faults.lifetime = 10_000;
  rmSync(certificateFile(certificate.settings, NAME));
  rmSync(stateFile(certificate.settings, NAME));
  const second = scene.process();
  second.follow([certificate]);
  await until(() => scene.server.orders.length >= 3, "the order that replaces");
  const [, issued, replacing] = scene.server.orders;
  assert.equal(issued?.replaces, undefined);
  assert.match(replacing?.replaces ?? "", /^[\w-]+\.[\w-]+$/);
  assert.notEqual(stored(certificate).serialNumber, before.serialNumber);
});

test("an account is bound to that of a customer; without the key, the error says what to set", {
  skip: noOpenssl,
}, async () => {
  await using scene = await Scene.start();
  scene.server.faults.macKey = "c2VjcmV0LW9mLWEtY3VzdG9tZXI";
  const unbound = scene.certificate("a.example");
  const bound = scene.certificate("b.example", {
    externalAccount: { keyId: "customer-1", hmacKey: scene.server.faults.macKey },
  });
  const process = scene.process();
  process.follow([unbound, bound]);
  await until(() => steps(process, bound) === "renew" && steps(process, unbound) === "retry", "both outcomes");
  assert.match(process.stepOf(unbound)?.failure?.message ?? "", /set externalAccount/);
  assert.doesNotMatch(scene.lines.join("\n"), /c2VjcmV0LW9m/);
});

test("a process that has lost its lock during the order, as by being suspended, writes nothing", {
  skip: noOpenssl,
}, async () => {
  await using scene = await Scene.start();
  const held = Promise.withResolvers<void>();
  scene.server.faults.hold = held.promise;
  const certificate = scene.certificate();
  const process = scene.process();
  process.follow([certificate]);
  await until(() => scene.server.orders.length === 1, "the order");
  writeFileSync(lockFile(certificate.settings, NAME), "another process");
  held.resolve();
  await until(() => steps(process, certificate) !== "order", "the end of the order");
  assert.equal(steps(process, certificate), "wait");
  assert.throws(() => stored(certificate), /ENOENT/);
});

test("an account that the server has forgotten is replaced", { skip: noOpenssl }, async () => {
  await using scene = await Scene.start();
  const [before, after] = [scene.certificate("a.example"), scene.certificate("b.example")];
  const process = scene.process({ ...PACE, firstPause: 20 });
  process.follow([before]);
  await until(() => steps(process, before) === "renew", "the first certificate");
  scene.server.forgetAccounts();
  process.follow([before, after]);
  await until(() => steps(process, after) === "renew", "the other certificate");
  assert.equal(scene.server.accounts, 2);
  assert.match(scene.lines.join("\n"), /no certificate was issued.*accountDoesNotExist/);
});

test("a reload keeps an order in progress; a process that ends gives it up at once", { skip: noOpenssl }, async () => {
  await using scene = await Scene.start();
  const held = Promise.withResolvers<void>();
  scene.server.faults.hold = held.promise;
  const certificate = scene.certificate();
  const first = scene.process();
  first.follow([certificate]);
  await until(() => scene.server.orders.length === 1, "the order");
  first.follow([scene.certificate(), scene.certificate("other.example")]);
  await until(() => scene.server.orders.length === 2, "the other order");
  await first.close();
  // Its locks are free, so another process orders without waiting until they are stale.
  const second = scene.process();
  second.follow([certificate]);
  await until(() => scene.server.orders.length === 3, "the order of the other process");
  held.resolve();
  await until(() => steps(second, certificate) === "renew", "the certificate");
});

test("a shutdown does not wait for a server that does not respond, or that is about to be asked again", async () => {
  const storage = mkdtempSync(join(tmpdir(), "tracegate-acme-"));
  const fetches: Record<string, Fetch> = {
    hangs: () => new Promise(() => {}),
    fails: async () => ({ status: 503, headers: [], body: Buffer.of() }),
  };
  for (const fetch of Object.values(fetches)) {
    const asked = Promise.withResolvers<void>();
    let calls = 0;
    const counted: Fetch = (url, request) => {
      calls++;
      asked.resolve();
      return fetch(url, request);
    };
    const log = new LogOutput(parseLogFilter("info"), "text", () => {}).logger("acme");
    const process = new Certificates(counted, log, PACE);
    process.follow([{ name: NAME, settings: { directory: "https://acme.example/", storage, challenge: "http-01" } }]);
    await asked.promise;
    await new Promise(setImmediate);
    await process.close();
    assert.equal(calls, 1);
  }
  rmSync(storage, { recursive: true });
});

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  constants,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "node:tls";
import { exportJWK, generateKeyPair } from "jose";
import { stringify } from "yaml";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { freePort, freePorts } from "../../helpers/free-ports.ts";
import { GatewayProcess, type RunningGateway, TestGateway } from "../../helpers/gateway.ts";

const PATIENCE_MS = 60_000;
const notLinux = process.platform !== "linux" && "needs prlimit";

interface Status {
  readonly generation: number;
  readonly synchronized: boolean;
  readonly hash: string | null;
  readonly diskDiffers: boolean;
  readonly nextRetryAt: string | null;
  readonly restartRequired: readonly string[];
  readonly lastError: { readonly message: string } | null;
}

async function status(gateway: RunningGateway): Promise<Status> {
  return (await fetch(`${gateway.url("admin")}/config/status`)).json() as Promise<Status>;
}

async function synchronizedMetric(gateway: RunningGateway): Promise<string | undefined> {
  const text = await (await fetch(`${gateway.url("stats")}/metrics`)).text();
  return /^tracegate_config_synchronized (\d)$/m.exec(text)?.[1];
}

/** Repeats a request until it has the wanted result. */
async function eventually<T>(what: string, ask: () => Promise<T>, wanted: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await ask().catch((error: unknown) => error as T);
    if (wanted(value)) return value;
    if (Date.now() > deadline) assert.fail(`${what}: ${JSON.stringify(value)}`);
    await delay(20);
  }
}

async function get(gateway: RunningGateway): Promise<string> {
  return (await fetch(`http://127.0.0.1:${gateway.port("bind/0")}/`)).text();
}

function serves(gateway: RunningGateway, body: string): Promise<unknown> {
  return eventually(
    `the answer ${body}`,
    () => get(gateway),
    (answer) => answer === body,
  );
}

const OWN = {
  adminAddr: "127.0.0.1:0",
  statsAddr: "127.0.0.1:0",
  readinessAddr: "127.0.0.1:0",
  workerThreads: 1,
};

interface Extra {
  readonly config?: object;
  readonly routes?: readonly object[];
  readonly binds?: readonly object[];
}

/** A configuration that responds to every request with `body`. */
function answering(body: string, { config = {}, routes = [], binds = [] }: Extra = {}): string {
  const last = { policies: { directResponse: { status: 200, body } } };
  const serving = { port: 0, listeners: [{ routes: [...routes, last] }] };
  return stringify({ config: { ...OWN, ...config }, binds: [serving, ...binds] });
}

/** Many routes: reading and building them takes a while. */
const many = Array.from({ length: 1500 }, (_, i) => ({
  name: `r${i}`,
  matches: [{ path: { exact: `/r${i}` } }],
  backends: [{ host: `127.0.0.1:${1 + i}` }],
}));

/** A route that names a file with a credential. */
function naming(file: string): object {
  const policies = { backendAuth: { key: { value: { file }, location: { header: { name: "x-key" } } } } };
  return { name: "named", matches: [{ path: { exact: "/named" } }], backends: [{ host: "127.0.0.1:9", policies }] };
}

function replace(file: string, text: string): void {
  writeFileSync(`${file}.next`, text);
  renameSync(`${file}.next`, file);
}

/** A file that stops its reader, a process, until the test lets it go: the configuration that names it has been read by then. */
class Gate implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "tracegate-gate-"));
  readonly file = join(this.#folder, "gate");
  #handle: FileHandle | undefined;

  constructor() {
    execFileSync("mkfifo", [this.file]);
  }

  /** Resolves when the gateway has begun to read it. */
  async reached(): Promise<void> {
    // Without a reader it cannot be opened like this.
    const flags = constants.O_WRONLY | constants.O_NONBLOCK;
    await eventually(
      "a reader",
      async () => {
        this.#handle = await open(this.file, flags);
      },
      (error) => error === undefined,
    );
  }

  async release(): Promise<void> {
    await this.#handle?.write("secret");
    await this.#handle?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.#folder, { recursive: true });
  }
}

suite("the file on disk takes effect in the end", () => {
  test("a write during the start, after the file was read", async () => {
    await using gate = new Gate();
    await using gateway = await GatewayProcess.launch(answering("first", { routes: [naming(gate.file)] }));
    await gate.reached();
    replace(gateway.file, answering("written during the start"));
    await gate.release();
    await gateway.until(() => gateway.ready, "the gateway to be ready");
    await serves(gateway, "written during the start");
    assert.equal((await status(gateway)).synchronized, true);
  });

  test("a write during a reload, after the file was read", async () => {
    await using gate = new Gate();
    await using gateway = await GatewayProcess.start(answering("first"));
    replace(gateway.file, answering("second", { routes: [naming(gate.file)] }));
    await gate.reached();
    replace(gateway.file, answering("written during the reload"));
    await gate.release();
    await serves(gateway, "written during the reload");
    assert.equal((await status(gateway)).synchronized, true);
  });

  test("a ConfigMap that is swapped during a reload", async () => {
    await using gate = new Gate();
    await using gateway = await GatewayProcess.start(answering("first"));
    const version = (name: string, text: string): void => {
      mkdirSync(join(gateway.folder, name));
      writeFileSync(join(gateway.folder, name, "gateway.yaml"), text);
      symlinkSync(name, join(gateway.folder, "..tmp"));
      renameSync(join(gateway.folder, "..tmp"), join(gateway.folder, "..data"));
    };
    version("..v1", answering("mounted", { routes: [naming(gate.file)] }));
    rmSync(gateway.file);
    symlinkSync(join("..data", "gateway.yaml"), gateway.file);
    await gate.reached();
    version("..v2", answering("swapped"));
    await gate.release();
    await serves(gateway, "swapped");
  });

  test("eight writes in a row while reloads are slow", async () => {
    await using gateway = await TestGateway.start(answering("0", { routes: many }));
    for (let i = 1; i <= 8; i++) {
      writeFileSync(gateway.file, answering(String(i), { routes: many }));
      await delay(100);
    }
    await serves(gateway, "8");
    const wanted = createHash("sha256")
      .update(answering("8", { routes: many }))
      .digest("hex");
    const last = await eventually(
      "the status",
      () => status(gateway),
      ({ synchronized }) => synchronized,
    );
    assert.deepEqual([last.hash, last.diskDiffers, last.lastError], [wanted, false, null]);
  });

  test("a certificate that is renewed during a reload, after it was read", { skip: noOpenssl }, async () => {
    using ca = new TestCa();
    const [old, renewed] = [ca.issue("old.test"), ca.issue("new.test")];
    await using gate = new Gate();
    await using gateway = await GatewayProcess.start(answering("plain"));
    const [cert, key] = [join(gateway.folder, "tls.crt"), join(gateway.folder, "tls.key")];
    const install = ({ certFile, keyFile }: typeof old): void => {
      copyFileSync(keyFile, key);
      copyFileSync(certFile, cert);
    };
    install(old);
    const https = { protocol: "HTTPS", tls: { cert, key } };
    const listeners = [
      { ...https, hostname: "x.test", routes: [] },
      { ...https, hostname: "y.test", routes: [naming(gate.file)] },
    ];
    const port = await freePort();
    replace(gateway.file, answering("plain", { binds: [{ port, listeners }] }));
    await gate.reached();
    install(renewed);
    await gate.release();
    await gateway.until(() => gateway.lines.some(({ message }) => message === "configuration reloaded"), "the reload");
    // It is read again with the renewed certificate.
    await gate.reached();
    await gate.release();
    const served = async (): Promise<string> => {
      const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, servername: "x.test" });
      await once(socket, "secureConnect");
      const name = String(socket.getPeerCertificate().subject.CN);
      socket.destroy();
      return name;
    };
    await eventually("the renewed certificate", served, (name) => name === "new.test");
  });
});

suite("a configuration rejected for a reason outside of its files is retried without another write", () => {
  const refused = (gateway: RunningGateway): Promise<Status> =>
    eventually(
      "the rejection",
      () => status(gateway),
      ({ lastError }) => lastError !== null,
    );

  test("a port that is in use, then free", async () => {
    await using gateway = await TestGateway.start(answering("first"));
    const other = createServer().listen({ port: 0, exclusive: true });
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const listeners = [{ routes: [{ policies: { directResponse: { status: 200, body: "more" } } }] }];
    replace(gateway.file, answering("second", { binds: [{ port, listeners }] }));
    const during = await refused(gateway);
    assert.match(during.lastError?.message ?? "", /port is in use/);
    assert.deepEqual([during.synchronized, during.diskDiffers], [false, true]);
    assert.ok(during.nextRetryAt !== null);
    assert.equal(await synchronizedMetric(gateway), "0");
    assert.equal(await get(gateway), "first");
    other.close();
    await once(other, "close");
    await serves(gateway, "second");
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), "more");
    const after = await status(gateway);
    assert.deepEqual([after.synchronized, after.nextRetryAt, after.lastError], [true, null, null]);
    assert.equal(await synchronizedMetric(gateway), "1");
  });

  test("a file that only the rejected version names, and that appears later", async () => {
    await using gateway = await TestGateway.start(answering("first"));
    const secret = join(gateway.folder, "later", "key");
    replace(gateway.file, answering("second", { routes: [naming(secret)] }));
    assert.match((await refused(gateway)).lastError?.message ?? "", /cannot read .*it does not exist/);
    mkdirSync(join(gateway.folder, "later"));
    writeFileSync(secret, "secret");
    await serves(gateway, "second");
    assert.equal((await status(gateway)).synchronized, true);
  });

  test("a URL that responds later", async () => {
    const { publicKey } = await generateKeyPair("ES256", { extractable: true });
    const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
    // First a key set that no token can be verified with, which is a problem of the configuration; then a usable one.
    const answers = ['{"keys":[{"kty":"oct"}]}'];
    const issuer = createHttpServer((_request, response) => response.end(answers.shift() ?? jwks)).listen(
      0,
      "127.0.0.1",
    );
    await once(issuer, "listening");
    try {
      const url = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/keys`;
      const jwtAuth = { mode: "strict", issuer: "https://issuer.test", jwks: { url } };
      const policies = { jwtAuth, directResponse: { status: 200, body: "token" } };
      const routes = [{ name: "tokens", matches: [{ path: { exact: "/tokens" } }], policies }];
      await using gateway = await TestGateway.start(answering("first"));
      replace(gateway.file, answering("second", { routes }));
      assert.match((await refused(gateway)).lastError?.message ?? "", /has no key that/);
      await serves(gateway, "second");
      assert.equal(answers.length, 0);
    } finally {
      issuer.closeAllConnections();
      issuer.close();
    }
  });

  test("no file descriptors are left, then some are free", { skip: notLinux }, async () => {
    await using gateway = await GatewayProcess.start(answering("first"));
    const pid = String(gateway.process.pid);
    const used = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
    let limit = 0;
    // Enough to read the file, too few to listen.
    for (let free = 0; free < 8; limit++) if (!used.has(limit)) free++;
    execFileSync("prlimit", ["--pid", pid, `--nofile=${limit}:`]);
    const listeners = [{ routes: [{ policies: { directResponse: { status: 200 } } }] }];
    const binds = (await freePorts(15)).map((port) => ({ port, listeners }));
    replace(gateway.file, answering("second", { binds }));
    const refused = (): boolean =>
      gateway.lines.some(({ message }) => /^Failed to reload config: .*EMFILE/s.test(String(message)));
    await gateway.until(refused, "the rejection");
    execFileSync("prlimit", ["--pid", pid, "--nofile=4096:"]);
    await serves(gateway, "second");
    await eventually(
      "the status",
      () => status(gateway),
      ({ synchronized }) => synchronized,
    );
  });
});

suite("/config/status", () => {
  test("a removed or changed file shows in the status at once, before the reload is rejected", async () => {
    const first = answering("first");
    await using gateway = await TestGateway.start(first);
    const before = await status(gateway);
    assert.equal(before.hash, createHash("sha256").update(first).digest("hex"));
    assert.deepEqual([before.synchronized, before.diskDiffers], [true, false]);
    rmSync(gateway.file);
    const gone = await status(gateway);
    assert.deepEqual([gone.synchronized, gone.diskDiffers, gone.hash], [false, true, before.hash]);
    assert.equal(await synchronizedMetric(gateway), "0");
    const missing = await eventually(
      "the rejection",
      () => status(gateway),
      ({ lastError }) => lastError !== null,
    );
    assert.match(missing.lastError?.message ?? "", /cannot read the file: it does not exist/);
    assert.equal(await get(gateway), "first");
    writeFileSync(gateway.file, first);
    const back = await eventually(
      "the file",
      () => status(gateway),
      ({ synchronized }) => synchronized,
    );
    assert.deepEqual([back.lastError, back.hash], [null, before.hash]);
  });

  test("the hash covers the files that the configuration names", async () => {
    await using gateway = await TestGateway.start(answering("first"));
    const secret = join(gateway.folder, "key");
    writeFileSync(secret, "one");
    const text = answering("second", { routes: [naming(secret)] });
    assert.equal(await gateway.reconfigure(text), "applied");
    const { hash } = await status(gateway);
    assert.equal(hash, createHash("sha256").update(text).update("one").digest("hex"));
    writeFileSync(secret, "two");
    const wanted = createHash("sha256").update(text).update("two").digest("hex");
    await eventually(
      "the new hash",
      () => status(gateway),
      (now) => now.hash === wanted && now.synchronized,
    );
  });

  test("settings that are read only at the start: a change needs a restart until it is reverted", async () => {
    await using gateway = await TestGateway.start(answering("first"));
    const changed = {
      adminAddr: "127.0.0.1:1",
      workerThreads: 2,
      logging: { level: "debug" },
      recorder: { off: true },
    };
    assert.equal(await gateway.reconfigure(answering("second", { config: changed })), "applied");
    const fields = ["config.adminAddr", "config.logging.level", "config.recorder.off", "config.workerThreads"];
    assert.deepEqual([...(await status(gateway)).restartRequired].sort(), fields);
    const line = gateway.lines.find(({ message }) => /restart/.test(String(message)));
    assert.equal(line?.level, "warn");
    for (const field of fields) assert.ok(JSON.stringify(line).includes(field), field);
    assert.equal(await get(gateway), "second");
    assert.equal(await gateway.reconfigure(answering("third")), "applied");
    assert.deepEqual((await status(gateway)).restartRequired, []);
  });
});

suite("SIGHUP", () => {
  test("reads an unchanged file again, also one that was rejected", async () => {
    await using gateway = await GatewayProcess.start(answering("first"));
    gateway.process.kill("SIGHUP");
    await eventually(
      "the reload",
      () => status(gateway),
      ({ generation }) => generation === 2,
    );
    assert.equal(await get(gateway), "first");

    assert.equal(await gateway.reconfigure("colour: blue"), "rejected");
    const refusals = (): number =>
      gateway.lines.filter(({ message }) => String(message).startsWith("Failed to reload")).length;
    assert.equal(refusals(), 1);
    gateway.process.kill("SIGHUP");
    await gateway.until(() => refusals() === 2, "the second rejection");
    assert.equal(await get(gateway), "first");
  });
});

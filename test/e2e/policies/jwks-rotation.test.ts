import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { LogOutput } from "../../../src/base/log.ts";
import { parseLogFilter } from "../../../src/base/log-filter.ts";
import { ResourceStore } from "../../../src/config/resources/store.ts";
import { Gateway } from "../../../src/main/gateway.ts";
import { LogSink } from "../../../src/main/log-sink.ts";
import { ANYWHERE } from "../../../src/net/testing/egress.ts";

const ISSUER = "https://issuer.example";
const PATIENCE_MS = 30_000;

/** An issuer whose key set may change, or be unavailable (undefined). */
class Issuer implements AsyncDisposable {
  published: string | undefined;
  readonly #server = createServer((_request, response) =>
    response.writeHead(this.published === undefined ? 503 : 200).end(this.published),
  );

  async listen(): Promise<string> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  publish(...keys: readonly { readonly jwk: object }[]): void {
    this.published = JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** A gateway in this process, which fetches documents again after milliseconds. */
class QuickGateway implements AsyncDisposable {
  #log = "";
  #seen = 0;
  #gateway: Gateway | undefined;
  #wake: () => void = () => {};

  async start(config: object): Promise<void> {
    const output = new LogOutput(parseLogFilter("info"), "json", (text) => {
      this.#log += text;
      this.#wake();
    });
    this.#gateway = await Gateway.start(
      { kind: "text", text: JSON.stringify(config) },
      {},
      () => ({ output, sink: new LogSink(() => "") }),
      () => {},
      new ResourceStore(ANYWHERE, { refresh: 20, retry: 20 }),
    );
  }

  async status(token: string): Promise<number> {
    const port = Object.values(this.#gateway?.supervisor.ports ?? {})[0];
    const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { authorization: `Bearer ${token}` } });
    await response.text();
    return response.status;
  }

  /** Waits for a matching line of the log, after those of earlier waits. */
  async logged(message: RegExp): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const found = message.exec(this.#log.slice(this.#seen));
      if (found !== null) {
        this.#seen += found.index + found[0].length;
        return;
      }
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve;
        signal.onabort = () => reject(new Error(`waited too long for ${message}: ${this.#log.slice(-500)}`));
      });
    }
  }

  /** Later waits skip what has been logged so far. */
  skip(): void {
    this.#seen = this.#log.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway?.shutdown();
  }
}

async function makeKey(kid: string): Promise<{ readonly jwk: object; readonly token: string }> {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const token = await new SignJWT({ iss: ISSUER })
    .setProtectedHeader({ alg: "ES256", kid })
    .setExpirationTime("5m")
    .sign(privateKey);
  return { jwk: { ...(await exportJWK(publicKey)), kid }, token };
}

test("keys that an issuer adds are accepted, removed ones are rejected, and failures of the issuer change nothing", async () => {
  const [first, second] = await Promise.all([makeKey("k1"), makeKey("k2")]);
  await using issuer = new Issuer();
  issuer.publish(first);
  const jwtAuth = { mode: "strict", issuer: ISSUER, jwks: { url: await issuer.listen() } };
  const ephemeral = { adminAddr: "127.0.0.1:0", statsAddr: "127.0.0.1:0", readinessAddr: "127.0.0.1:0" };
  const route = { policies: { jwtAuth, directResponse: { status: 200 } } };
  await using gateway = new QuickGateway();
  await gateway.start({
    config: { ...ephemeral, workerThreads: 1, connectionMinTerminationDeadline: "0s" },
    binds: [{ port: 0, listeners: [{ routes: [route] }] }],
  });
  const statuses = (): Promise<number[]> => Promise.all([first, second].map(({ token }) => gateway.status(token)));
  assert.deepEqual(await statuses(), [200, 401]);

  issuer.publish(first, second);
  await gateway.logged(/configuration reloaded/);
  assert.deepEqual(await statuses(), [200, 200]);

  issuer.published = undefined;
  await gateway.logged(/cannot fetch [^ ]+ again: it responds with status 503; the previous document stays in use/);
  assert.deepEqual(await statuses(), [200, 200]);

  // An unusable document is rejected, and fetched again.
  issuer.published = '{"error":"maintenance"}';
  for (const _ of [1, 2]) await gateway.logged(/Failed to reload config: [^\n]*jwtAuth\.jwks: is not a key set/);
  assert.deepEqual(await statuses(), [200, 200]);

  gateway.skip();
  issuer.publish(second);
  await gateway.logged(/configuration reloaded/);
  assert.deepEqual(await statuses(), [401, 200]);
});

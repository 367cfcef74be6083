import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { promisify } from "node:util";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { LogOutput } from "../../../src/base/log.ts";
import { parseLogFilter } from "../../../src/base/log-filter.ts";
import { Gateway } from "../../../src/main/gateway.ts";
import { LogSink } from "../../../src/main/log-sink.ts";
import { ANYWHERE } from "../../../src/net/testing/egress.ts";
import { ResourceStore } from "../../../src/translation/resources/store.ts";

const run = promisify(execFile);

const ISSUER = "https://issuer.example";
const PATIENCE_MS = 60_000;

/** An issuer whose key set may change, or be unavailable (undefined). */
class Issuer implements AsyncDisposable {
  published: string | undefined;
  asked = 0;
  readonly #server = createServer((_request, response) => {
    this.asked++;
    response.writeHead(this.published === undefined ? 503 : 200).end(this.published);
  });

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

  async start(config: object, timing = { refresh: 20, retry: 20, cooldown: 0 }, env = {}): Promise<void> {
    const output = new LogOutput(parseLogFilter("info"), "json", (text) => {
      this.#log += text;
      this.#wake();
    });
    this.#gateway = await Gateway.start(
      { kind: "text", text: JSON.stringify(config) },
      env,
      () => ({ output, sink: new LogSink(() => "") }),
      () => {},
      { resources: new ResourceStore(ANYWHERE, timing) },
    );
  }

  get missing(): readonly object[] | undefined {
    return this.#gateway?.status.missingDocuments;
  }

  /** The response of one of the gateway's own servers, which close connections of their own process. Rejects unless it is 2xx. */
  async own(server: string, path: string): Promise<string> {
    const ask = "const r = await fetch(process.argv[1]); console.log(await r.text()); process.exitCode = r.ok ? 0 : 1";
    const url = `http://${this.#gateway?.addresses[server]?.[0]}${path}`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", ask, url]);
    return stdout;
  }

  async status(token: string, path = "/"): Promise<number> {
    const port = Object.values(this.#gateway?.supervisor.ports ?? {})[0];
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { authorization: `Bearer ${token}` },
      redirect: "manual",
    });
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

  issuer.published = '{"error":"maintenance"}';
  await gateway.logged(/cannot fetch [^ ]+ again: its response is neither [^;]+; the previous document stays in use/);
  assert.deepEqual(await statuses(), [200, 200]);

  // A key set that no token can be verified with is rejected, and fetched again.
  issuer.published = '{"keys":[{"kty":"oct"}]}';
  for (const _ of [1, 2]) await gateway.logged(/Failed to reload config: [^\n]*jwtAuth\.jwks: has no key that/);
  assert.deepEqual(await statuses(), [200, 200]);

  gateway.skip();
  issuer.publish(second);
  await gateway.logged(/configuration reloaded/);
  assert.deepEqual(await statuses(), [401, 200]);
});

const EPHEMERAL = { adminAddr: "127.0.0.1:0", statsAddr: "127.0.0.1:0", readinessAddr: "127.0.0.1:0" };
const WORKERS = { ...EPHEMERAL, connectionMinTerminationDeadline: "0s", workerThreads: 2 };

/** A route that needs the key set behind `url`, and one that needs nothing. */
const configOf = (url: string, more: object = {}) => ({
  config: WORKERS,
  binds: [
    {
      port: 0,
      listeners: [
        {
          routes: [
            { name: "open", matches: [{ path: { exact: "/open" } }], policies: { directResponse: { status: 200 } } },
            {
              name: "closed",
              policies: {
                jwtAuth: { mode: "strict", issuer: ISSUER, jwks: { url }, ...more },
                directResponse: { status: 200 },
              },
            },
          ],
        },
      ],
    },
  ],
});

for (const [published, problem] of [
  [undefined, "it responds with status 503"],
  ["<html>login</html>", "its response is neither a key set nor a discovery document"],
  ['{"keys":[]}', "its response is a key set without keys"],
] as const)
  test(`the gateway starts and is ready without a key set: ${problem}; only routes that need it respond with 503, until there is one`, async () => {
    const key = await makeKey("k1");
    await using issuer = new Issuer();
    issuer.published = published;
    const url = await issuer.listen();
    await using gateway = new QuickGateway();
    await gateway.start(configOf(`${url}?token=secret`));
    await gateway.own("readiness", "/healthz/ready");
    assert.deepEqual([await gateway.status(key.token), await gateway.status(key.token, "/open")], [503, 200]);
    // A token that no key of this issuer could verify is still the client's fault.
    assert.equal(await gateway.status("not-a-token"), 401);
    await gateway.logged(new RegExp(`cannot fetch [^ ]+\\?<redacted>: ${problem}; requests that need it get 503`));
    const [missing] = (gateway.missing ?? []) as readonly { readonly url: string; readonly formerInUse: boolean }[];
    assert.deepEqual([missing?.url, missing?.formerInUse], [`${url}?<redacted>`, false]);
    const metrics = await gateway.own("stats", "/metrics");
    assert.match(
      metrics,
      /tracegate_document_failing_since_timestamp_seconds\{url="[^"]+<redacted>",former_in_use="false"\} \d/,
    );
    gateway.skip();
    issuer.publish(key);
    await gateway.logged(/configuration reloaded/);
    assert.equal(await gateway.status(key.token), 200);
    assert.deepEqual(gateway.missing, []);
  });

test("a token with a new key triggers a new fetch of the set soon; a flood of unknown keys, once per cooldown for all workers", async () => {
  const cooldown = 500;
  const [first, second] = await Promise.all([makeKey("k1"), makeKey("k2")]);
  await using issuer = new Issuer();
  issuer.publish(first);
  await using gateway = new QuickGateway();
  await gateway.start(configOf(await issuer.listen()), { refresh: 3_600_000, retry: 3_600_000, cooldown });
  assert.equal(issuer.asked, 1);
  issuer.publish(first, second);
  assert.equal(await gateway.status(second.token), 401);
  await gateway.logged(/configuration reloaded/);
  assert.equal(await gateway.status(second.token), 200);
  assert.equal(issuer.asked, 2);
  const strangers = await Promise.all(Array.from({ length: 40 }, (_, i) => makeKey(`stranger${i}`)));
  const begin = performance.now();
  assert.deepEqual(new Set(await Promise.all(strangers.map(({ token }) => gateway.status(token)))), new Set([401]));
  const cooldowns = Math.ceil((performance.now() - begin) / cooldown);
  assert.ok(issuer.asked <= 2 + cooldowns, `${issuer.asked} fetches in ${cooldowns} cooldowns`);
});

test("a provider without its documents: 503 for requests that need it, and a reload with one is accepted", async () => {
  await using issuer = new Issuer();
  const url = await issuer.listen();
  const oidc = { issuer: url, clientId: "c", clientSecret: "s", redirectURI: "http://127.0.0.1/callback" };
  await using gateway = new QuickGateway();
  const config = configOf(url);
  const [route] = config.binds[0]?.listeners[0]?.routes.slice(1) ?? [];
  assert.ok(route !== undefined);
  route.policies = { oidc, directResponse: { status: 200 } } as never;
  await gateway.start(config, undefined, { OIDC_COOKIE_SECRET: "ab".repeat(32) });
  assert.deepEqual([await gateway.status(""), await gateway.status("", "/open")], [503, 200]);
  assert.equal(await gateway.status("", "/callback?state=s&code=c"), 503);
  gateway.skip();
  const discovery = {
    issuer: url,
    authorization_endpoint: `${url}a`,
    token_endpoint: `${url}t`,
    jwks_uri: `${url}keys`,
  };
  issuer.published = JSON.stringify({ ...discovery, keys: [(await makeKey("k1")).jwk] });
  await gateway.logged(/configuration reloaded/);
  assert.equal(await gateway.status(""), 302);
});

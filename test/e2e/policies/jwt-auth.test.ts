import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { stringify } from "yaml";
import { TestGateway } from "../../helpers/gateway.ts";
import { TRACEGATE } from "../../helpers/programs.ts";

const ISSUER = "https://issuer.example";

/** Responds with the headers of the request. */
const upstream = createServer((request, response) => response.end(JSON.stringify(request.headers)));
/** What the issuer publishes; undefined: it is unavailable. */
let published: string | undefined;
const issuer = createServer((_request, response) =>
  response.writeHead(published === undefined ? 503 : 200).end(published),
);
for (const server of [upstream, issuer]) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
}
after(() => {
  for (const server of [upstream, issuer]) {
    server.closeAllConnections();
    server.close();
  }
});

const portOf = (server: typeof upstream): number => (server.address() as AddressInfo).port;
const issuerUrl = `http://127.0.0.1:${portOf(issuer)}/jwks.json`;

async function makeKey(kid: string) {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const token = await new SignJWT({ sub: "alice" })
    .setProtectedHeader({ alg: "ES256", kid })
    .setIssuer(ISSUER)
    .setExpirationTime("5m")
    .sign(privateKey);
  return { jwks: JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid }] }), token };
}

const config = (jwks: unknown): object => ({
  binds: [
    {
      port: 0,
      listeners: [
        {
          policies: { jwtAuth: { mode: "strict", issuer: ISSUER, jwks } },
          routes: [
            {
              policies: { authorization: { rules: ['jwt.sub == "alice"'] } },
              backends: [{ host: `127.0.0.1:${portOf(upstream)}` }],
            },
          ],
        },
      ],
    },
  ],
});

async function ask(gateway: TestGateway, token?: string): Promise<[number, string]> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/`, { headers });
  return [response.status, await response.text()];
}

test("tokens are verified with keys behind a URL; the backend gets no token, and the log has the subject", async () => {
  const { jwks, token } = await makeKey("k1");
  published = jwks;
  await using gateway = await TestGateway.start(config({ url: issuerUrl }));
  assert.deepEqual(await ask(gateway), [401, "authentication failure: no bearer token found"]);
  const [status, seen] = await ask(gateway, token);
  assert.equal(status, 200);
  assert.ok(!("authorization" in JSON.parse(seen)));
  assert.equal((await ask(gateway, token))[0], 200);
  const broken = `${token.slice(0, -8)}AAAAAAAA`;
  assert.deepEqual(await ask(gateway, broken), [401, "authentication failure"]);
  const why = "authentication failure: the token is invalid or malformed: its signature does not match the key";
  await gateway.until(
    () => gateway.lines.some((line) => String(line.error).startsWith(`${why}, at `)),
    "the reason in the log",
  );
  await gateway.until(() => gateway.lines.filter((line) => line["jwt.sub"] === "alice").length === 2, "the log");
  const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).text();
  for (const text of [dump, JSON.stringify(gateway.lines)]) assert.ok(!text.includes(token));
});

test("tracegate check fetches the keys too", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "tracegate-jwks-")), "gateway.yaml");
  after(() => rm(dirname(file), { recursive: true }));
  await writeFile(file, stringify(config({ url: issuerUrl })));
  const check = async (keys?: string, ...options: readonly string[]): Promise<string> => {
    published = keys;
    const child = spawn(TRACEGATE, ["check", "-f", file, ...options], { stdio: ["ignore", "pipe", "inherit"] });
    const [out] = await Promise.all([text(child.stdout), once(child, "close")]);
    return `${child.exitCode} ${out}`;
  };
  assert.equal(await check((await makeKey("k1")).jwks), "0 valid: 1 bind, 1 listener, 1 route, 1 backend\n");
  assert.match(
    await check(),
    /^0 .*gateway\.yaml:\d+:\d+: warning: .*jwks\.url: cannot fetch .*: it responds with status 503; requests that need it get 503/s,
  );
  assert.equal(
    await check('{"keys":[]}', "--offline"),
    `0 note: not fetched and not checked, because of --offline: ${issuerUrl}\nvalid: 1 bind, 1 listener, 1 route, 1 backend\n`,
  );
  assert.match(await check('{"keys":[{"kty":"oct"}]}'), /^1 .*jwks: has no key that tokens can be verified with/s);
});

test("a file with keys is watched: tokens of a new key are accepted without a restart", async () => {
  const [first, second] = await Promise.all([makeKey("k1"), makeKey("k2")]);
  await using gateway = await TestGateway.start(config(first.jwks));
  assert.equal((await ask(gateway, second.token))[0], 401);
  const file = join(gateway.folder, "jwks.json");
  await writeFile(file, first.jwks);
  assert.equal(await gateway.reconfigure(config({ file: "jwks.json" })), "applied");
  assert.equal((await ask(gateway, first.token))[0], 200);
  const before = gateway.lines.length;
  await writeFile(file, second.jwks);
  await gateway.until(
    () => gateway.lines.slice(before).some((line) => line.message === "configuration reloaded"),
    "the reload",
  );
  assert.deepEqual(await ask(gateway, first.token), [401, "authentication failure"]);
  const why = 'authentication failure: the token uses the unknown key "k1"';
  await gateway.until(
    () => gateway.lines.some((line) => String(line.error).startsWith(`${why}, at `)),
    "the reason in the log",
  );
  assert.equal((await ask(gateway, second.token))[0], 200);
});

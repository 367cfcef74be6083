import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { jwtVerify } from "jose";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { refusedStart, TestGateway } from "../../helpers/gateway.ts";
import { ProxyServer } from "../../helpers/proxy-server.ts";
import { RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";

/** Responds with the credentials that have reached the backend. */
const backend = () => RawUpstream.answering((request) => reply(valuesOf(request, "authorization").join() || "none"));
const at = (path: string, policies: object, ...backends: object[]): object => ({
  matches: [{ path: { pathPrefix: path } }],
  policies,
  backends,
});
const gatewayOf = (routes: readonly object[], others: object = {}): Promise<TestGateway> =>
  TestGateway.start({ ...others, binds: [{ port: 0, listeners: [{ routes }] }] });

async function get(gateway: TestGateway, path: string): Promise<string> {
  return await (await fetch(`http://127.0.0.1:${gateway.port()}${path}`)).text();
}

test("on a route: for backends without their own; a key and a signing key from files", async (t) => {
  await using upstream = await backend();
  const host = `127.0.0.1:${upstream.port}`;
  const folder = await mkdtemp(join(tmpdir(), "tracegate-keys-"));
  const [keyFile, pemFile] = [join(folder, "key"), join(folder, "key.pem")];
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-384" });
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(keyFile, "from-a-file\n");
  await writeFile(pemFile, privateKey.export({ type: "pkcs8", format: "pem" }));
  const own = { policies: { backendAuth: { key: "of-the-backend" } } };
  const jwtSign = {
    signingKey: { file: pemFile },
    alg: "ES384",
    kid: "k1",
    claims: { iss: "gateway", sub: "reports", aud: "warehouse" },
    ttl: "90s",
  };
  await using gateway = await gatewayOf(
    [
      at("/file", { backendAuth: { key: { file: keyFile } } }, { host }),
      at("/own", { backendAuth: { key: "of-the-route" } }, { host, ...own }),
      at("/named", { backendAuth: { key: "of-the-route" } }, { backend: "/shop" }),
      at("/signed", { backendAuth: { jwtSign } }, { host }),
      at("/none", {}, { host }),
    ],
    { backends: [{ name: "shop", host, policies: { backendAuth: { key: "of-the-named" } } }] },
  );
  assert.equal(await get(gateway, "/file"), "Bearer from-a-file");
  assert.equal(await get(gateway, "/own"), "Bearer of-the-backend");
  assert.equal(await get(gateway, "/named"), "Bearer of-the-named");
  assert.equal(await get(gateway, "/none"), "none");
  const token = (await get(gateway, "/signed")).replace("Bearer ", "");
  const { payload, protectedHeader } = await jwtVerify(token, publicKey, { issuer: "gateway", audience: "warehouse" });
  assert.deepEqual([protectedHeader.alg, protectedHeader.kid, payload.sub], ["ES384", "k1", "reports"]);
  assert.equal(Number(payload.exp) - Number(payload.iat), 90);
});

test("TLS and a tunnel on a route apply to connections to its backends", { skip: noOpenssl }, async (t) => {
  using ca = new TestCa();
  const { cert, key } = ca.issue("one.example");
  const secure = createSecureServer({ cert, key }, (_request, response) => response.end("secure"));
  t.after(() => {
    secure.closeAllConnections();
    secure.close();
  });
  secure.listen(0, "127.0.0.1");
  await once(secure, "listening");
  await using proxy = await ProxyServer.start((secure.address() as AddressInfo).port);
  const backendTunnel = { proxy: { host: `127.0.0.1:${proxy.port}` } };
  const backendTLS = { root: ca.certFile };
  await using gateway = await gatewayOf([
    at("/both", { backendTLS, backendTunnel }, { host: "one.example:443" }),
    at(
      "/own",
      { backendTLS: { insecure: true }, backendTunnel },
      { host: "two.example:443", policies: { backendTLS } },
    ),
  ]);
  assert.equal(await get(gateway, "/both"), "secure");
  assert.deepEqual(proxy.asked, ["one.example:443 one.example:443 "]);
  // The certificate is not that of two.example.
  assert.equal(await get(gateway, "/own"), "upstream call failed");
});

test("on a route that delegates to a group they are rejected, because they would not apply to its backends", async () => {
  const error = await refusedStart({
    routeGroups: [{ name: "inner", routes: [] }],
    binds: [{ port: 0, listeners: [{ routes: [at("/", { backendAuth: { key: "k" } }, { routeGroup: "inner" })] }] }],
  });
  assert.match(error, /policies\.backendAuth: does not reach the backends of the group inner; set it on its routes/);
});

test("cloud credentials are rejected when the configuration loads, each by its name", async () => {
  const ways = [{ gcp: {} }, { aws: {} }, { azure: {} }, "copilot"];
  const error = await refusedStart({
    binds: [
      {
        port: 0,
        listeners: [{ routes: ways.map((backendAuth) => at("/", { backendAuth }, { host: "a.example:1" })) }],
      },
    ],
  });
  const refusals = error.match(/needs credentials from a cloud, which tracegate does not support; use key/g);
  assert.equal(refusals?.length, 4, error);
});

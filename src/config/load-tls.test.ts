import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, suite, test } from "node:test";
import { type Identity, noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import type { TlsServer } from "../tls/tls-settings.ts";
import { type LoadResult, loadConfig } from "./load.ts";

const NO_UPSTREAM = "neither in the configuration's folder nor in the working directory";

suite("certificate files", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let identity: Identity;
  let folder: string;

  before(() => {
    ca = new TestCa();
    identity = ca.issue("one.example");
    folder = dirname(identity.certFile);
    for (const [from, to] of [
      [identity.certFile, "cert.pem"],
      [identity.keyFile, "key.pem"],
    ] as const)
      copyFileSync(from, join(folder, to));
  });
  after(() => ca[Symbol.dispose]());

  function load(text: string, env: Record<string, string> = {}): LoadResult {
    const path = join(folder, "gateway.yaml");
    writeFileSync(path, text);
    return loadConfig({ kind: "files", paths: [path] }, env);
  }

  function tlsOf(result: LoadResult): TlsServer | undefined {
    assert.ok(result.ok, JSON.stringify(result));
    return result.ir.binds[0]?.listeners[0]?.tls;
  }

  test("are found beside the configuration and named as files to watch", () => {
    const result = load("gateways: {web: {port: 8443, tls: {cert: cert.pem, key: ./key.pem}}}");
    assert.deepEqual(tlsOf(result), { cert: identity.cert, key: identity.key });
    const files = ["gateway.yaml", "cert.pem", "key.pem"].map((name) => join(folder, name));
    assert.deepEqual([...result.inputs.files.keys()], files);
    assert.deepEqual(result.ok && result.ir.binds[0]?.protocol, "tls");
  });

  test("are found in the home folder", () => {
    const result = load("gateways: {web: {port: 8443, tls: {cert: ~/cert.pem, key: $HOME/key.pem}}}", { HOME: folder });
    assert.equal(tlsOf(result)?.cert, identity.cert);
  });

  test("fields that a listener omits come from frontendPolicies.tls", () => {
    const result = load(`
frontendPolicies:
  tls: { minVersion: TLS_V1_3, cipherSuites: [TLS_AES_256_GCM_SHA384] }
binds:
  - port: 8443
    listeners:
      - { hostname: a.example, protocol: HTTPS, routes: [], tls: { cert: cert.pem, key: key.pem } }
      - hostname: b.example
        protocol: HTTPS
        routes: []
        tls: { cert: cert.pem, key: key.pem, minTLSVersion: TLS_V1_2, cipherSuites: [ECDHE-ECDSA-AES128-GCM-SHA256] }
`);
    assert.ok(result.ok, JSON.stringify(result));
    const shown = result.ir.binds[0]?.listeners.map(({ tls }) => [tls?.minVersion, tls?.cipherSuites]);
    assert.deepEqual(shown, [
      ["TLSv1.3", ["TLS_AES_256_GCM_SHA384"]],
      ["TLSv1.2", ["ECDHE-ECDSA-AES128-GCM-SHA256"]],
    ]);
    assert.deepEqual(result.ir.targeted[0]?.policy, {
      frontend: { tls: { minVersion: "TLS_V1_3", cipherSuites: ["TLS_AES_256_GCM_SHA384"] } },
    });
  });

  test("that are missing are named too: once they exist, the configuration is valid", () => {
    const result = load("gateways: {web: {port: 8443, tls: {cert: later.pem, key: key.pem}}}");
    assert.ok(!result.ok);
    assert.equal(result.inputs.files.get(join(folder, "later.pem")), "absent");
    assert.match(result.inputs.files.get(join(folder, "key.pem")) ?? "", /^[0-9a-f]{64}$/);
    assert.deepEqual(
      result.diagnostics.map(({ line, column, path, message }) => ({ line, column, path, message })),
      [
        {
          line: 1,
          column: 42,
          path: "gateways.web.tls.cert",
          message: `cannot read later.pem: it does not exist, ${NO_UPSTREAM}`,
        },
      ],
    );
  });

  test("beside the configuration win over those in the working directory", () => {
    const elsewhere = mkdtempSync(join(tmpdir(), "tracegate-cwd-"));
    const before = process.cwd();
    process.chdir(elsewhere);
    try {
      copyFileSync(identity.certFile, join(elsewhere, "only-here.pem"));
      copyFileSync(ca.keyFile, join(elsewhere, "key.pem"));
      // The key beside the configuration is the one that fits.
      const text = "gateways: {web: {port: 8443, tls: {cert: only-here.pem, key: key.pem}}}";
      const { cert, key } = identity;
      assert.deepEqual(tlsOf(load(text)), { cert, key });
    } finally {
      process.chdir(before);
      rmSync(elsewhere, { recursive: true });
    }
  });

  test("may be a CA that issues certificates; the environment says how long they are cached", () => {
    const files = `cert: ${ca.certFile}, key: ${ca.keyFile}`;
    const text = `gateways: {web: {port: 8443, tls: {mode: dynamicCa, ${files}}}}`;
    assert.deepEqual(tlsOf(load(text)), { cert: ca.cert, key: ca.key, dynamicCa: { ttl: 300_000, capacity: 256 } });
    const kept = (ttl: string, capacity: string) =>
      load(text, { DYNAMIC_CA_CERT_CACHE_TTL: ttl, DYNAMIC_CA_CERT_CACHE_CAPACITY: capacity });
    assert.deepEqual(tlsOf(kept("30", "1"))?.dynamicCa, { ttl: 30_000, capacity: 1 });
    assert.deepEqual(tlsOf(kept("1h30m", "65536"))?.dynamicCa, { ttl: 5_400_000, capacity: 65_536 });
    for (const [ttl, capacity] of [
      ["0", "0"],
      ["13h", "65537"],
      ["-1", "1.5"],
      ["soon", "x"],
    ] as const) {
      const result = kept(ttl, capacity);
      assert.ok(!result.ok);
      assert.deepEqual(
        result.diagnostics.map(({ message }) => message),
        ["TTL", "CAPACITY"].map((name) => `environment variable DYNAMIC_CA_CERT_CACHE_${name} is not valid`),
      );
    }
  });

  test("must be in the order of the chain: the server's certificate first", () => {
    writeFileSync(join(folder, "reversed.pem"), ca.cert + identity.cert);
    const result = load("gateways: {web: {port: 8443, tls: {cert: reversed.pem, key: key.pem}}}");
    assert.ok(!result.ok);
    assert.deepEqual(
      result.diagnostics.map(({ path, message }) => `${path}: ${message}`),
      [
        "gateways.web.tls.key: key.pem: the private key belongs to a later certificate of cert; put that certificate first, " +
          "then those of its CAs",
      ],
    );
  });

  test("of a CA that has expired are rejected with their position", (t) => {
    const expired = new X509Certificate(ca.cert).validToDate;
    t.mock.timers.enable({ apis: ["Date"], now: expired });
    const result = load(`gateways: {web: {port: 1, tls: {mode: dynamicCa, cert: ${ca.certFile}, key: ${ca.keyFile}}}}`);
    assert.ok(!result.ok);
    const message = `${ca.certFile}: the CA's certificate expired at ${expired.toISOString()}; replace cert and key`;
    assert.deepEqual(
      result.diagnostics.map(({ path, column, message }) => ({ path, column, message })),
      [{ path: "gateways.web.tls.cert", column: 56, message }],
    );
  });

  test("need cipher suites of an offered version", () => {
    const problems = (settings: string): unknown => {
      const result = load(`gateways: {web: {port: 1, tls: {cert: cert.pem, key: key.pem, ${settings}}}}`);
      return result.ok || result.diagnostics.map(({ path, message }) => `${path}: ${message}`);
    };
    const older = "cipherSuites: [ECDHE-ECDSA-AES128-GCM-SHA256]";
    const newer = "cipherSuites: [TLS13_AES_128_GCM_SHA256]";
    const at = "gateways.web.tls.cipherSuites: has no suite of TLS";
    assert.deepEqual(problems(`${older}, minTLSVersion: TLS_V1_3`), [
      `${at} 1.3, the only version that minTLSVersion leaves`,
    ]);
    assert.deepEqual(problems(`${newer}, maxTLSVersion: TLS_V1_2`), [
      `${at} 1.2, the only version that maxTLSVersion leaves`,
    ]);
    for (const each of [older, newer, `${older}, maxTLSVersion: TLS_V1_2`]) assert.equal(problems(each), true);
  });

  test("of CAs that insecure ignores cause a warning", () => {
    const backend = `{host: "10.0.0.1:443", policies: {backendTLS: {insecure: true, root: ${ca.certFile}}}}`;
    const result = load(`binds: [{port: 1, listeners: [{protocol: HTTP, routes: [{backends: [${backend}]}]}]}]`);
    assert.ok(result.ok, JSON.stringify(result));
    const [warning] = result.warnings.filter(({ path }) => path.endsWith("backendTLS.root"));
    assert.match(warning?.message ?? "", /^has no effect: insecure accepts every certificate/);
  });

  test("whose key is too short for clients are rejected with the reason", () => {
    const { certFile, keyFile } = ca.issueWith("rsa:1024", "short.example");
    const result = load(`gateways: {web: {port: 1, tls: {cert: ${certFile}, key: ${keyFile}}}}`);
    assert.ok(!result.ok);
    const message = `${certFile}: the certificate's key is too short; expected RSA of at least 2048 bits, or ECDSA`;
    assert.deepEqual(
      result.diagnostics.map(({ path, message: text }) => ({ path, message: text })),
      [{ path: "gateways.web.tls.cert", message }],
    );
  });

  test("are never shown, even if they cannot be read as a key", () => {
    writeFileSync(join(folder, "broken.pem"), identity.key.replace(/\n./, "\n!"));
    const result = load("gateways: {web: {port: 8443, tls: {cert: cert.pem, key: broken.pem}}}");
    assert.ok(!result.ok);
    const text = JSON.stringify(result.diagnostics);
    assert.match(text, /has no private key/);
    for (const line of identity.key.split("\n").filter((each) => each.length > 20)) assert.ok(!text.includes(line));
  });
});

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ClientCertificate } from "./client-certificate.ts";

const hasOpenssl = (() => {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

/** A self-signed certificate. */
function issue(subject: string, ...altNames: readonly string[]): ClientCertificate {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null"];
  const config = `[req]\ndistinguished_name=d\nx509_extensions=e\n[d]\n[e]\nsubjectAltName=@a\n[a]\n${altNames.join("\n")}\n`;
  const folder = mkdtempSync(join(tmpdir(), "tracegate-certificate-"));
  const file = join(folder, "req.cnf");
  try {
    writeFileSync(file, config);
    const args = ["req", "-x509", ...key, "-subj", subject, "-days", "1", "-config", file];
    const pem = execFileSync("openssl", args, { stdio: ["ignore", "pipe", "pipe"] });
    return new ClientCertificate(new X509Certificate(pem));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("a certificate has names, and the workload that they identify", { skip: !hasOpenssl }, () => {
  const spiffe = "spiffe://cluster.local/ns/shop/sa/cart";
  const certificate = issue(
    "/C=CH/O=Example/CN=cart",
    `URI.1=${spiffe}`,
    "DNS.1=cart.example",
    "IP.1=192.0.2.1",
    "email.1=a@b.example",
  );
  assert.equal(certificate.subject, "C=CH, O=Example, CN=cart");
  assert.equal(certificate.issuer, "C=CH, O=Example, CN=cart");
  assert.equal(certificate.subjectCn, "cart");
  assert.deepEqual(certificate.subjectAltNames, [spiffe, "cart.example", "192.0.2.1", "a@b.example"]);
  assert.equal(certificate.spiffeId, spiffe);
  assert.deepEqual(certificate.identity, { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "cart" });
  assert.match(certificate.pem, /^-----BEGIN CERTIFICATE-----/);
});

test("names with commas stay whole, and missing names are absent", { skip: !hasOpenssl }, () => {
  const certificate = issue("/O=Example", "URI.1=https://a.example/?x=1, URI:y", "DNS.1=b.example");
  assert.equal(certificate.subjectCn, undefined);
  assert.equal(certificate.spiffeId, undefined);
  assert.equal(certificate.identity, undefined);
  assert.deepEqual(certificate.subjectAltNames, ["https://a.example/?x=1, URI:y", "b.example"]);
});

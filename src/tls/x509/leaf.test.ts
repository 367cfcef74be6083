import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { type KeyKind, noOpenssl, TestCa } from "../../../test/helpers/certificates.ts";
import { type Issuer, issuerProblem, readIssuer } from "./issuer.ts";
import { mintLeaf } from "./leaf.ts";

const HOUR = 3_600_000;

suite("certificates made on demand", { skip: noOpenssl }, () => {
  const kinds: readonly KeyKind[] = ["P-256", "P-384", "rsa:2048"];
  for (const kind of kinds)
    test(`are accepted by verifiers when the CA's key is ${kind}`, () => {
      using ca = new TestCa("Example & Söhne, Inc.", kind);
      const leaf = mintLeaf(readIssuer(ca.cert, ca.key), "one.example", Date.now());
      const [certificate, signer] = [new X509Certificate(leaf.cert), new X509Certificate(ca.cert)];
      assert.ok(certificate.verify(signer.publicKey));
      assert.ok(certificate.checkIssued(signer));
      assert.ok(certificate.checkPrivateKey(createPrivateKey(leaf.key)));
      assert.equal(certificate.checkHost("one.example"), "one.example");
      assert.equal(certificate.checkHost("two.example"), undefined);
      const file = join(ca.folder, "leaf.pem");
      writeFileSync(file, leaf.cert);
      openssl(
        "verify",
        "-x509_strict",
        "-purpose",
        "sslserver",
        "-verify_hostname",
        "one.example",
        "-CAfile",
        ca.certFile,
        file,
      );
      // OpenSSL parses it and encodes it again: DER has only one encoding.
      assert.equal(openssl("x509", "-in", file), leaf.cert);
    });

  test("have the extensions that a server's certificate needs, and no more", () => {
    using ca = new TestCa();
    const file = join(ca.folder, "leaf.pem");
    const { cert } = mintLeaf(readIssuer(ca.cert, ca.key), "one.example", Date.now());
    writeFileSync(file, cert);
    const text = openssl("x509", "-in", file, "-noout", "-text");
    for (const line of ["Version: 3 (0x2)", "Subject: CN = one.example", "DNS:one.example", "NIST CURVE: P-256"])
      assert.ok(text.includes(line), line);
    assert.deepEqual(
      [...text.matchAll(/X509v3 (.*)\n +(.*)/g)].map(([, name, value]) => [name, value]),
      [
        ["extensions:", "X509v3 Key Usage: critical"],
        ["Extended Key Usage: ", "TLS Web Server Authentication"],
        ["Subject Alternative Name: ", "DNS:one.example"],
        ["Authority Key Identifier: ", keyIdentifier(ca)],
      ],
    );
    assert.match(text, /Key Usage: critical\n +Digital Signature\n/);
    // X.690 11.2.2: no bits after the last one that is set.
    assert.match(new X509Certificate(cert).raw.toString("hex"), /0603551d0f0101ff040403020780/);
  });

  test("have names that are too long for a common name only as alternative names", () => {
    using ca = new TestCa();
    const issuer = readIssuer(ca.cert, ca.key);
    const [fits, long] = ["x".repeat(56), "y".repeat(57)].map((label) => `${label}.example`);
    const read = (name = ""): X509Certificate => new X509Certificate(mintLeaf(issuer, name, Date.now()).cert);
    assert.equal(read(fits).subject, `CN=${fits}`);
    assert.equal(read(long).subject, undefined);
    assert.equal(read(long).checkHost(long ?? ""), long);
    const file = join(ca.folder, "leaf.pem");
    writeFileSync(file, mintLeaf(issuer, long ?? "", Date.now()).cert);
    openssl("verify", "-x509_strict", "-CAfile", ca.certFile, file);
    assert.match(openssl("x509", "-in", file, "-noout", "-text"), /Subject Alternative Name: critical/);
  });

  test("are valid from an hour ago for a day, and never longer than the CA", () => {
    using ca = new TestCa();
    const issuer = readIssuer(ca.cert, ca.key);
    const validity = (now: number): number[] => {
      const { cert, notAfter } = mintLeaf(issuer, "one.example", now);
      const { validFromDate: from, validToDate: to } = new X509Certificate(cert);
      assert.equal(Math.floor(notAfter / 1000) * 1000, to.getTime());
      return [from.getTime() - now, to.getTime() - now];
    };
    const start = issuer.notBefore.getTime();
    assert.deepEqual(validity(start), [0, 24 * HOUR]);
    assert.deepEqual(validity(start + 2 * HOUR), [-HOUR, 24 * HOUR]);
    const end = issuer.notAfter.getTime();
    assert.deepEqual(validity(end - HOUR), [-HOUR, HOUR]);
    assert.throws(() => mintLeaf(issuer, "one.example", end), /the CA's certificate expired at 20/);
  });

  test("have their own key and serial number", () => {
    using ca = new TestCa();
    const issuer = readIssuer(ca.cert, ca.key);
    const made = Array.from({ length: 50 }, () => mintLeaf(issuer, "one.example", Date.now()));
    assert.equal(new Set(made.map(({ key }) => key)).size, 50);
    const numbers = made.map(({ serialNumber }) => serialNumber);
    assert.deepEqual(
      made.map(({ cert }) => new X509Certificate(cert).serialNumber),
      numbers,
    );
    assert.equal(new Set(numbers).size, 50);
    for (const number of numbers) assert.match(number, /^[4-7][0-9A-F]{31}$/);
  });

  test("are accepted by clients that trust a CA above one without a key identifier", () => {
    using root = new TestCa();
    const below = root.issueCa("below");
    const file = join(root.folder, "leaf.pem");
    writeFileSync(file, mintLeaf(readIssuer(below.cert, below.key), "one.example", Date.now()).cert);
    openssl("verify", "-CAfile", root.certFile, "-untrusted", below.certFile, file);
    assert.match(openssl("x509", "-in", file, "-noout", "-text"), /Authority Key Identifier: \n +([0-9A-F]{2}:){19}/);
  });
});

suite("certificates of CAs", { skip: noOpenssl }, () => {
  const problem = (cert: string, key: string, now = Date.now()) =>
    issuerProblem(new X509Certificate(cert), createPrivateKey(key), now);

  test("are accepted", () => {
    using ca = new TestCa();
    assert.equal(problem(ca.cert, ca.key), undefined);
  });

  test("must be allowed to sign certificates, now", () => {
    using ca = new TestCa();
    const host = ca.issue("one.example");
    assert.match(problem(host.cert, host.key)?.message ?? "", /not that of a CA.* or use mode: static/);
    const { notBefore, notAfter }: Issuer = readIssuer(ca.cert, ca.key);
    assert.match(problem(ca.cert, ca.key, notAfter.getTime())?.message ?? "", /expired at 20.*Z; replace cert and key/);
    assert.match(problem(ca.cert, ca.key, notBefore.getTime() - 1)?.message ?? "", /is not valid before 20/);
  });

  const rejected: readonly KeyKind[] = ["P-521", "ed25519"];
  for (const kind of rejected)
    test(`must not have a key of type ${kind}`, () => {
      using ca = new TestCa("other", kind);
      assert.equal(problem(ca.cert, ca.key)?.field, "key");
      assert.throws(() => readIssuer(ca.cert, ca.key), /has to be RSA, or ECDSA on P-256 or P-384/);
    });
});

function keyIdentifier(ca: TestCa): string | undefined {
  const text = openssl("x509", "-in", ca.certFile, "-noout", "-ext", "subjectKeyIdentifier");
  return /([0-9A-F]{2}:)+[0-9A-F]{2}/.exec(text)?.[0];
}

function openssl(...args: string[]): string {
  return execFileSync("openssl", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

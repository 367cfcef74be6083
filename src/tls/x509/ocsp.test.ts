import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import { type Identity, noOpenssl, TestCa } from "../../../test/helpers/certificates.ts";
import { checkTlsServer, findExpired } from "../tls-check.ts";
import { readOcspStaple } from "./ocsp.ts";

const DAY_MS = 24 * 3600 * 1000;

suite("OCSP responses", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let identity: Identity;
  let good: Buffer;

  before(() => {
    ca = new TestCa();
    identity = ca.issue("a.example");
    good = readFileSync(ca.staple(identity));
  });
  after(() => ca[Symbol.dispose]());

  const read = (response: Buffer, { cert }: Pick<Identity, "cert"> = identity) =>
    readOcspStaple(response, new X509Certificate(cert));

  test("about the certificate are sent until they expire", () => {
    const { response, expires } = read(good);
    assert.equal(response, good);
    assert.ok(Math.abs(expires - Date.now() - DAY_MS) < 3600 * 1000, new Date(expires).toISOString());
  });

  test("that cannot be used are rejected with the reason", () => {
    assert.throws(() => read(good, ca.issue("b.example")), /about another certificate/);
    using other = new TestCa("another CA");
    assert.throws(() => read(good, other.issue("a.example")), /about another certificate/);
    assert.throws(() => read(readFileSync(ca.staple(identity, "revoked"))), /the certificate is revoked/);
    // OCSPResponse ::= SEQUENCE { responseStatus ENUMERATED { tryLater (3) } }
    assert.throws(() => read(Buffer.from("30030a0103", "hex")), /returned an error, tryLater/);
  });

  test("that are truncated or damaged at any byte are rejected", () => {
    for (let length = 0; length < good.length; length++) assert.throws(() => read(good.subarray(0, length)), Error);
    for (let at = 0; at < good.length; at++) {
      const damaged = Buffer.from(good);
      damaged[at] = (damaged[at] ?? 0) ^ 0xff;
      try {
        read(damaged);
      } catch (error) {
        assert.ok(error instanceof Error && !(error instanceof TypeError), `byte ${at}: ${error}`);
      }
    }
    assert.throws(() => read(Buffer.from("-----BEGIN OCSP RESPONSE-----")), /it is not an OCSP response; expected DER/);
  });

  test("are found unusable when the configuration loads, and expired ones are warned about", () => {
    const { cert, key } = identity;
    const ocspStaple = good.toString("base64");
    const other = ca.issue("b.example");
    assert.equal(checkTlsServer({ cert, key, ocspStaple }), undefined);
    assert.equal(checkTlsServer({ ...other, ocspStaple })?.field, "ocspStaple");
    const second = checkTlsServer({ ...other, otherCertificates: [{ ...ca.issue("c.example"), ocspStaple }] });
    assert.deepEqual([second?.field, second?.other], ["ocspStaple", 0]);
    assert.deepEqual(findExpired({ cert, key, ocspStaple }, Date.now()), []);
    const [expired] = findExpired({ cert, key, ocspStaple }, Date.now() + 1.5 * DAY_MS);
    assert.match(expired?.message ?? "", /^the OCSP response expired at 20.* and is not sent; fetch it again$/);
    const both = findExpired({ cert, key, ocspStaple }, Date.now() + 3 * DAY_MS);
    assert.deepEqual(
      both.map(({ field }) => field),
      ["cert", "ocspStaple"],
    );
  });
});

import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { after, before, beforeEach, suite, test } from "node:test";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { LeafCache } from "./leaf-cache.ts";

suite("kept certificates", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let now = 0;
  let made: string[] = [];

  beforeEach(() => {
    made = [];
  });
  before(() => {
    ca = new TestCa();
    now = new X509Certificate(ca.cert).validFromDate.getTime();
  });
  after(() => ca[Symbol.dispose]());

  const cache = (ttl: number, capacity: number): LeafCache =>
    new LeafCache(
      ca.cert,
      ca.key,
      { ttl, capacity },
      (name) => made.push(name),
      () => now,
    );

  test("are the same for a name until they expire, however often they are requested", () => {
    const leaves = cache(1000, 10);
    const first = leaves.get("one.example");
    now += 600;
    assert.equal(leaves.get("one.example"), first);
    assert.notEqual(leaves.get("two.example").key, first.key);
    now += 399;
    assert.equal(leaves.get("one.example"), first);
    now += 1;
    assert.notEqual(leaves.get("one.example").cert, first.cert);
    assert.deepEqual(made, ["one.example", "two.example", "one.example"]);
  });

  test("come with the CA's certificate", () => {
    const { cert } = cache(1000, 10).get("one.example");
    const [leaf = "", above = ""] = cert.split(/(?<=-----END CERTIFICATE-----\n)/);
    assert.equal(new X509Certificate(leaf).checkHost("one.example"), "one.example");
    assert.equal(above, ca.cert);
  });

  test("are evicted when they are the least recently used", () => {
    const leaves = cache(1000, 2);
    const one = leaves.get("one.example");
    const two = leaves.get("two.example");
    assert.equal(leaves.get("one.example"), one);
    leaves.get("three.example");
    assert.equal(leaves.get("one.example"), one);
    assert.notEqual(leaves.get("two.example"), two);
  });

  test("end with the CA", () => {
    const end = new X509Certificate(ca.cert).validToDate.getTime();
    const leaves = cache(10_000, 2);
    now = end - 5000;
    const last = leaves.get("one.example");
    now = end - 1;
    assert.equal(leaves.get("one.example"), last);
    now = end;
    assert.throws(() => leaves.get("one.example"), /the CA's certificate expired/);
    now = new X509Certificate(ca.cert).validFromDate.getTime();
  });

  test("are made for DNS names only", () => {
    const leaves = cache(1000, 10);
    const label = "x".repeat(63);
    for (const name of ["a", "my_service.local", "xn--bcher-kva.example", "0.a", `${label}.${label}`])
      assert.equal(new X509Certificate(leaves.get(name).cert).subjectAltName, `DNS:${name}`);
    const invalid = [
      ["", /names no server/],
      ["192.0.2.1", /asks for 192\.0\.2\.1, an address/],
      ...[
        "-a.example",
        "a-.example",
        `${label}x.example`,
        "a..example",
        "*.example",
        Array(65).fill("abc").join("."),
      ].map((name) => [name, /which is not a DNS name/] as const),
    ] as const;
    for (const [name, expected] of invalid) assert.throws(() => leaves.get(name), expected, name);
  });
});

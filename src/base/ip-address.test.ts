import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/helpers/property.ts";
import { canonicalAddress, Networks, parseNetwork } from "./ip-address.ts";

test("an address has one form, whatever its spelling", () => {
  for (const [text, canonical] of [
    ["203.0.113.9", "203.0.113.9"],
    ["::FFFF:203.0.113.9", "203.0.113.9"],
    ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["::", "::"],
    ["::1.2.3.4", "::102:304"],
    ["1::", "1::"],
    ["0:1:2:3:4:5:6:7", "0:1:2:3:4:5:6:7"],
    ["fe80::1%eth0", undefined],
    ["203.0.113.09", undefined],
    ["203.0.113", undefined],
    ["", undefined],
  ] as const)
    assert.equal(canonicalAddress(text), canonical, text);
});

test("the canonical form of an address is an address in canonical form", () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
      const canonical = canonicalAddress(text) ?? assert.fail(text);
      assert.equal(canonicalAddress(canonical), canonical);
      assert.equal(canonicalAddress(text.toUpperCase()), canonical);
      assert.ok(new Networks([text]).contains(canonical) && new Networks([canonical]).contains(text));
    }),
  );
});

test("a network contains addresses in every spelling, and only those", () => {
  const networks = new Networks(["10.0.0.0/8", "::ffff:192.0.2.0/120", "2001:DB8::/32", "203.0.113.9"]);
  for (const inside of [
    "10.1.2.3",
    "::ffff:10.1.2.3",
    "192.0.2.7",
    "2001:db8:1::1",
    "::FFFF:cb00:7109",
    "2001:db8::1%lo",
  ])
    assert.ok(networks.contains(inside), inside);
  for (const outside of ["11.0.0.1", "192.0.3.1", "2001:db9::1", "203.0.113.8", "::a00:1", "", "x"])
    assert.ok(!networks.contains(outside), outside);
});

test("of many networks the one that contains an address is found, and named", () => {
  const parts = fc.integer({ min: 0, max: 0xffff });
  const network = fc.oneof(
    fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })),
    fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 })),
  );
  fc.assert(
    fc.property(fc.array(network, { minLength: 1, maxLength: 20 }), parts, parts, (written, a, b) => {
      const texts = written
        .map(([address, bits]) => `${address}/${bits}`)
        .filter((text) => parseNetwork(text) !== undefined);
      const networks = new Networks(texts);
      const near = texts.flatMap((text) => {
        const address = text.split("/")[0] ?? "";
        return [address, address.replace(/[^.:]+$/, address.includes(".") ? String(a & 255) : b.toString(16))];
      });
      for (const address of near.filter((each) => canonicalAddress(each) !== undefined)) {
        const alone = texts.filter((text) => new Networks([text]).contains(address));
        const found = networks.find(address);
        assert.equal(found !== undefined, alone.length > 0, `${address} in ${texts}`);
        if (found !== undefined) assert.ok(alone.includes(found), `${address} is not in ${found}`);
      }
    }),
  );
});

test("families do not meet, and a wider network names those inside of it", () => {
  assert.equal(new Networks(["::/0"]).find("10.0.0.1"), undefined);
  assert.equal(new Networks(["0.0.0.0/0"]).find("::1"), undefined);
  const nested = new Networks(["10.1.0.0/16", "10.0.0.0/8", "10.255.255.255", "11.0.0.0/32"]);
  for (const [address, text] of [
    ["10.0.0.0", "10.0.0.0/8"],
    ["10.1.2.3", "10.0.0.0/8"],
    ["10.255.255.255", "10.0.0.0/8"],
    ["11.0.0.0", "11.0.0.0/32"],
    ["11.0.0.1", undefined],
    ["9.255.255.255", undefined],
  ] as const)
    assert.equal(nested.find(address), text, address);
});

test("texts that are not networks are rejected", () => {
  for (const text of [
    "10.0.0.0/33",
    "10.0.0.0/08",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "::/129",
    "::ffff:1.2.3.4/95",
    "fe80::%lo/64",
    "a",
  ])
    assert.equal(parseNetwork(text), undefined, text);
});

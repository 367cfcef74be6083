import assert from "node:assert/strict";
import { isIP } from "node:net";
import { suite, test } from "node:test";
import { fc } from "../../test/helpers/property.ts";
import type { ProxyHeader } from "./proxy-protocol.ts";
import { parseProxyHeader } from "./proxy-protocol.ts";

const SIGNATURE = Buffer.from("0d0a0d0a000d0a515549540a", "hex");

function v2(command: number, family: number, body: Buffer, length = body.length): Buffer {
  const fixed = Buffer.from([command, family, length >> 8, length & 255]);
  return Buffer.concat([SIGNATURE, fixed, body]);
}

const IPV4 = Buffer.from([192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 0x04, 0x01, 0xbb]);
const V4_ADDRESSES = { remoteAddress: "192.0.2.1", remotePort: 56324, localAddress: "198.51.100.2", localPort: 443 };
const V1 = Buffer.from("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n");
const V2 = v2(0x21, 0x11, IPV4);
const HTTP = Buffer.from("POST / HTTP/1.1\r\n");

function detail(header: ProxyHeader): string {
  return header.state === "invalid" ? header.detail : header.state;
}

suite("PROXY headers", () => {
  test("both versions give the client's address, whatever follows and however they are split", () => {
    for (const header of [V1, V2]) {
      const expected = { state: "complete", length: header.length, addresses: V4_ADDRESSES };
      assert.deepEqual(parseProxyHeader(Buffer.concat([header, HTTP]), "all"), expected);
      for (let end = 0; end < header.length; end++)
        assert.deepEqual(parseProxyHeader(header.subarray(0, end), "all"), { state: "more" });
      assert.deepEqual(parseProxyHeader(header, "all"), expected);
    }
  });

  test("IPv6 addresses are written in their shortest form", () => {
    const body = (source: string): Buffer =>
      Buffer.concat([Buffer.from(source, "hex"), Buffer.alloc(15), Buffer.from([1, 0, 80, 31, 144])]);
    for (const [hex, text] of [
      ["20010db8000000000000000000000001", "2001:db8::1"],
      ["00000000000000000000000000000000", "::"],
      ["20010db8000000010000000000000001", "2001:db8:0:1::1"],
      ["20010db8000100010001000100010000", "2001:db8:1:1:1:1:1:0"],
      ["00010000000000000000000000000000", "1::"],
      ["00000000000000000000ffffc0000201", "192.0.2.1"],
    ] as const) {
      const parsed = parseProxyHeader(v2(0x21, 0x21, body(hex)), "v2");
      assert.equal(parsed.state === "complete" && parsed.addresses?.remoteAddress, text);
      assert.equal(parsed.state === "complete" && parsed.addresses?.localAddress, "::1");
    }
    const text = parseProxyHeader(Buffer.from("PROXY TCP6 2001:db8::1 ::1 1 2\r\n"), "v1");
    assert.equal(text.state === "complete" && text.addresses?.remoteAddress, "2001:db8::1");
  });

  test("the address in a text header has one form, whatever its spelling", () => {
    for (const [spelling, address] of [
      ["::ffff:203.0.113.9", "203.0.113.9"],
      ["::FFFF:cb00:7109", "203.0.113.9"],
      ["0:0:0:0:0:ffff:CB00:7109", "203.0.113.9"],
      ["2001:DB8::1", "2001:db8::1"],
      ["2001:0db8:0:0::0001", "2001:db8::1"],
      ["2001:db8:0:0:0:0:203.0.113.9", "2001:db8::cb00:7109"],
    ] as const) {
      const parsed = parseProxyHeader(Buffer.from(`PROXY TCP6 ${spelling} ${spelling} 1 2\r\n`), "v1");
      assert.ok(parsed.state === "complete", spelling);
      assert.deepEqual([parsed.addresses?.remoteAddress, parsed.addresses?.localAddress], [address, address]);
    }
  });

  test("LOCAL, UNKNOWN and what is not TCP over IP keep the addresses of the socket", () => {
    for (const header of [
      v2(0x20, 0, Buffer.alloc(0)),
      v2(0x20, 0x11, IPV4),
      v2(0x21, 0, Buffer.alloc(0)),
      v2(0x21, 0x31, Buffer.alloc(216)),
      Buffer.from("PROXY UNKNOWN\r\n"),
      Buffer.from("PROXY UNKNOWN ffff::1 ffff::1 65535 65535\r\n"),
    ])
      assert.deepEqual(parseProxyHeader(header, "all"), {
        state: "complete",
        length: header.length,
        addresses: undefined,
      });
  });

  test("fields behind the addresses are skipped, up to 512 bytes in all", () => {
    const longest = v2(0x21, 0x11, Buffer.concat([IPV4, Buffer.alloc(500)]));
    const parsed = parseProxyHeader(longest, "v2");
    assert.equal(parsed.state === "complete" && parsed.length, 528);
    assert.match(detail(parseProxyHeader(v2(0x21, 0x11, IPV4, 513), "v2")), /more than 512 bytes/);
  });

  test("a header of a version that is not accepted is not a header", () => {
    assert.equal(parseProxyHeader(V1, "v2").state, "absent");
    assert.equal(parseProxyHeader(V2, "v1").state, "absent");
    assert.equal(parseProxyHeader(HTTP, "all").state, "absent");
    assert.equal(parseProxyHeader(Buffer.from("P"), "v2").state, "absent");
    assert.equal(parseProxyHeader(Buffer.from("PRI * HTTP/2.0\r\n"), "all").state, "absent");
  });

  test("malformed headers say what is wrong", () => {
    const text = (line: string): string => detail(parseProxyHeader(Buffer.from(line), "v1"));
    assert.match(text("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n"), /does not end in CRLF/);
    assert.match(text("PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n"), /not TCP4, TCP6 or UNKNOWN/);
    assert.match(text("PROXY TCP4 ::1 ::1 1 2\r\n"), /two addresses of TCP4/);
    assert.match(text("PROXY TCP6 1.2.3.4 ::1 1 2\r\n"), /two addresses of TCP6/);
    assert.match(text("PROXY TCP6 fe80::1%lo ::1 1 2\r\n"), /two addresses of TCP6/);
    for (const spelling of ["1.2.3.04", "0x1.2.3.4", "16909060", "1.2.3", "1.2.3.4%lo", "::ffff:1.2.3.4"])
      assert.match(text(`PROXY TCP4 ${spelling} 1.2.3.4 1 2\r\n`), /two addresses of TCP4/);
    assert.match(text("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n"), /two ports/);
    assert.match(text("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n"), /two ports/);
    assert.match(text("PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n"), /two addresses/);
    for (const port of ["65536", "01", "-1", "", "1e3"])
      assert.match(text(`PROXY TCP4 1.2.3.4 1.2.3.4 ${port} 2\r\n`), /a port is not/);
    assert.equal(text(`PROXY ${"x".repeat(100)}`), "more");
    assert.match(text(`PROXY ${"x".repeat(101)}`), /longer than 107 bytes/);
    assert.match(detail(parseProxyHeader(v2(0x31, 0x11, IPV4), "v2")), /version 3/);
    assert.match(detail(parseProxyHeader(v2(0x22, 0x11, IPV4), "v2")), /neither LOCAL nor PROXY/);
    assert.match(detail(parseProxyHeader(v2(0x21, 0x11, IPV4.subarray(1)), "v2")), /cut off/);
  });

  test("for any bytes, the result does not depend on how they are split, and addresses are valid", () => {
    const near = fc.oneof(
      fc.uint8Array({ maxLength: 64 }),
      fc.uint8Array({ maxLength: 600 }).map((rest) => Buffer.concat([SIGNATURE, rest])),
      fc.uint8Array({ minLength: 2, maxLength: 40 }).map((rest) => v2(0x21, 0x11, Buffer.from(rest))),
      fc.stringMatching(/^PROXY [TCP46 UNKW0-9.:\r\n]{0,110}$/).map((line) => Buffer.from(line)),
      fc
        .tuple(fc.ipV6(), fc.ipV6(), fc.nat(70_000), fc.nat(70_000))
        .map((parts) => Buffer.from(`PROXY TCP6 ${parts.join(" ")}\r\n`)),
    );
    fc.assert(
      fc.property(near, fc.constantFrom("v1", "v2", "all"), (input, version) => {
        const bytes = Buffer.from(input);
        const whole = parseProxyHeader(bytes, version);
        for (let end = 0; end <= bytes.length; end++) {
          const part = parseProxyHeader(bytes.subarray(0, end), version);
          if (part.state !== "more") return assert.deepEqual(part, whole);
        }
        assert.equal(whole.state, "more");
        return undefined;
      }),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 36, maxLength: 36 }), (body) => {
        const parsed = parseProxyHeader(v2(0x21, 0x21, Buffer.from(body)), "v2");
        assert.ok(parsed.state === "complete" && isIP(parsed.addresses?.remoteAddress ?? "") !== 0);
      }),
    );
  });
});

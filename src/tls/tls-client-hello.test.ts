import assert from "node:assert/strict";
import { once } from "node:events";
import { Duplex, PassThrough } from "node:stream";
import { suite, test } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import { MAX_CLIENT_HELLO, parseClientHello } from "./tls-client-hello.ts";

/** What a real client sends first. */
async function hello(options: ConnectionOptions): Promise<Buffer> {
  const wire = new PassThrough();
  const socket = connect({ ...options, socket: Duplex.from({ readable: new PassThrough(), writable: wire }) });
  socket.on("error", () => {});
  const [bytes] = (await once(wire, "data")) as [Buffer];
  socket.destroy();
  return bytes;
}

/** The same handshake bytes in records of at most `size` bytes. */
function fragmented(record: Buffer, size: number): Buffer {
  const body = record.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) {
    const fragment = body.subarray(at, at + size);
    const head = Buffer.from([22, 3, 1, 0, 0]);
    head.writeUInt16BE(fragment.length, 3);
    records.push(head, fragment);
  }
  return Buffer.concat(records);
}

/** A ClientHello with these extensions, each its type and value. */
function made(...extensions: readonly (readonly [number, Buffer])[]): Buffer {
  const list = Buffer.concat(extensions.flatMap(([type, value]) => [u16(type), u16(value.length), value]));
  const fixed = [u16(0x0303), Buffer.alloc(32), Buffer.of(0), u16(2), u16(0x1301), Buffer.of(1, 0)];
  const body = Buffer.concat([...fixed, u16(list.length), list]);
  const message = Buffer.concat([Buffer.of(1, 0), u16(body.length), body]);
  return Buffer.concat([Buffer.of(22, 3, 1), u16(message.length), message]);
}

function serverName(...names: string[]): readonly [number, Buffer] {
  const list = Buffer.concat(names.flatMap((name) => [Buffer.of(0), u16(name.length), Buffer.from(name, "latin1")]));
  return [0, Buffer.concat([u16(list.length), list])];
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

const complete = (name: string): object => ({ state: "complete", serverName: name });
const detail = (bytes: Buffer): string => {
  const parsed = parseClientHello(bytes);
  return parsed.state === "invalid" ? parsed.detail : parsed.state;
};

suite("ClientHello", () => {
  test("the server name of real clients is read, in TLS 1.2 and 1.3, and is lower-case", async () => {
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const)
      assert.deepEqual(parseClientHello(await hello({ servername: "A.Example", maxVersion })), complete("a.example"));
  });

  test("a client may name no server", async () => {
    assert.deepEqual(parseClientHello(await hello({})), complete(""));
    assert.deepEqual(parseClientHello(made()), complete(""));
  });

  test("every beginning needs more bytes; what follows does not matter", async () => {
    const bytes = await hello({ servername: "a.example" });
    for (let length = 0; length < bytes.length; length++)
      assert.deepEqual(parseClientHello(bytes.subarray(0, length)), { state: "more" }, `${length} bytes`);
    assert.deepEqual(parseClientHello(Buffer.concat([bytes, Buffer.from("more")])), complete("a.example"));
  });

  test("a ClientHello may be spread over several records, even within its length field, but not over too many", () => {
    const bytes = made(serverName("a.example"));
    for (const size of [2, 3, 7, 100]) {
      const spread = fragmented(bytes, size);
      assert.deepEqual(parseClientHello(spread), complete("a.example"));
      for (let length = 0; length < spread.length; length++)
        assert.deepEqual(parseClientHello(spread.subarray(0, length)), { state: "more" });
    }
    assert.equal(detail(fragmented(bytes, 1)), "the ClientHello is spread over too many records");
  });

  test("bytes after the extensions, within the message, are malformed: TLS libraries disagree about them", () => {
    const bytes = made(serverName("a.example"));
    const longer = Buffer.concat([bytes, Buffer.of(0)]);
    longer.writeUInt16BE(bytes.readUInt16BE(3) + 1, 3);
    longer.writeUInt16BE(bytes.readUInt16BE(7) + 1, 7);
    assert.equal(detail(longer), "the ClientHello is malformed");
    assert.deepEqual(parseClientHello(bytes), complete("a.example"));
  });

  test("other protocols are recognized by their first bytes", () => {
    assert.equal(detail(Buffer.from("G")), "not a TLS handshake");
    assert.equal(detail(Buffer.from([22, 2])), "not a TLS handshake");
    assert.equal(detail(Buffer.from([22, 3, 1, 0, 0])), "a TLS record of a forbidden size");
    assert.equal(detail(Buffer.from([22, 3, 1, 0xff, 0xff])), "a TLS record of a forbidden size");
    const serverHello = Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]);
    assert.equal(detail(serverHello), "the TLS handshake does not begin with a ClientHello");
  });

  test("a length over the limit is rejected before its bytes arrive", () => {
    const head = Buffer.from([22, 3, 1, 0x40, 0, 1, 0, 0, 0]);
    head.writeUIntBE(MAX_CLIENT_HELLO, 6, 3);
    assert.equal(detail(head), "the ClientHello is too large");
  });

  test("two names, and invalid names, are rejected", () => {
    assert.deepEqual(parseClientHello(made([10, Buffer.of(0, 0)], serverName("a.example"))), complete("a.example"));
    assert.equal(detail(made(serverName("a"), serverName("b"))), "the ClientHello names its server twice");
    const malformed = "the ClientHello has a malformed server name";
    assert.equal(detail(made(serverName("a", "b"))), malformed);
    for (const name of ["", ".", "a..", ".a", "a..b", "a b", "a\0b", "*.a", "[::1]", "é", "a".repeat(256)])
      assert.equal(detail(made(serverName(name))), malformed, JSON.stringify(name));
    assert.equal(detail(made([0, Buffer.of(0, 9, 0)])), malformed);
  });

  test("a dot at the end of the name, which clients copy from a URL, does not count", () => {
    assert.deepEqual(parseClientHello(made(serverName("A.example."))), complete("a.example"));
  });

  test("lengths that point outside are rejected, wherever they are", () => {
    const bytes = made(serverName("a.example"));
    for (let at = 9; at < bytes.length; at++) {
      const broken = Buffer.from(bytes);
      broken[at] = 0xff;
      const parsed = parseClientHello(broken);
      if (parsed.state === "complete") assert.match(parsed.serverName, /^[\w.-]*$/);
    }
    assert.equal(detail(Buffer.from([22, 3, 1, 0, 6, 1, 0, 0, 2, 3, 3])), "the ClientHello is malformed");
  });
});

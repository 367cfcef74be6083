import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ErrorCode } from "../base/errors.ts";
import { OwnSockets } from "../base/own-sockets.ts";
import { connect } from "./connect.ts";
import {
  AddressRefused,
  AdmittedAddress,
  Egress,
  NO_LOOKUP_RULES,
  type Provenance,
  type SocketAddress,
} from "./egress.ts";
import { admitted } from "./testing/egress.ts";

const own = new OwnSockets();
own.addPort("tcp", "bind", 8080);
own.addPort("tcp", "server", 15000);
own.addPort("udp", "bind", 5300);
const file = new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES }, own);
const stream = new Egress({ provenance: "stream", lookupRules: NO_LOOKUP_RULES }, own);

/** The error code with which an address is refused; undefined: it is admitted. */
function refusal(egress: Egress, address: SocketAddress, protocol: "tcp" | "udp" = "tcp"): ErrorCode | undefined {
  const found = egress.admit(address, protocol);
  return found instanceof AddressRefused ? found.code : undefined;
}

/** Ways to write an address of this host. */
const THIS_HOST = [
  "127.0.0.1",
  "127.8.9.1",
  "0.0.0.0",
  "0.1.2.3",
  "::1",
  "0:0:0:0:0:0:0:1",
  "::",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::ffff:0:0",
  "::127.0.0.1",
  "::ffff:0:127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b:1::127.0.0.1",
  "2002:7f00:1::",
  "::1%lo",
];

const INTERFACES = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));

for (const host of [
  ...THIS_HOST,
  ...INTERFACES,
  ...INTERFACES.filter((each) => !each.includes(":")).map((each) => `::ffff:${each}`),
])
  test(`${host}: the gateway's own ports are refused, whether the file or the stream names the address`, () => {
    assert.equal(refusal(file, { host, port: 8080 }), "TG_LOOP");
    assert.equal(refusal(file, { host, port: 15000 }), "TG_ADDRESS_REFUSED");
    assert.equal(refusal(file, { host, port: 5300 }, "udp"), "TG_LOOP");
    // A TCP port is not a UDP port.
    assert.equal(refusal(file, { host, port: 5300 }), undefined);
    assert.notEqual(refusal(stream, { host, port: 8080 }), undefined);
    assert.notEqual(refusal(stream, { host, port: 15000 }), undefined);
    assert.ok(file.isOwn(host, 5300, "udp") && !file.isOwn(host, 5301, "udp"));
  });

test("the same ports of other hosts are not own ports", () => {
  for (const host of ["192.0.2.1", "128.0.0.1", "2001:db8::1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "::2"]) {
    assert.equal(refusal(file, { host, port: 8080 }), undefined, host);
    assert.equal(refusal(stream, { host, port: 15000 }), undefined, host);
  }
});

test("a stream names no loopback, link-local, unspecified, multicast or metadata address; a file may", () => {
  const others = ["169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "febf::1", "::ffff:169.254.169.254"];
  others.push(
    "224.0.0.1",
    "239.1.1.1",
    "ff02::1",
    "255.255.255.255",
    "fd00:ec2::254",
    "fd20:ce::254",
    "100.100.100.200",
  );
  others.push("168.63.129.16", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1");
  for (const host of [...THIS_HOST, ...others]) {
    assert.equal(refusal(stream, { host, port: 9000 }), "TG_ADDRESS_REFUSED", host);
    assert.equal(refusal(file, { host, port: 9000 }), undefined, host);
  }
  for (const host of ["10.0.0.1", "192.168.1.1", "169.253.1.1", "fd00::1", "fec0::1", "223.255.255.255"])
    assert.equal(refusal(stream, { host, port: 9000 }), undefined, host);
});

test("a stream names no address of a denied network, however it is written, unless discovery reports it; a file may", () => {
  const rules = { denyDomains: [], denyNetworks: ["10.96.0.0/12", "fd00:10::/64"] };
  const [strict, lax] = (["stream", "operator"] as const).map(
    (provenance) => new Egress({ provenance, lookupRules: rules }, own),
  ) as [Egress, Egress];
  for (const host of [
    "10.96.0.1",
    "10.111.255.255",
    "::ffff:10.96.0.1",
    "::ffff:a60:1",
    "64:ff9b::a60:1",
    "fd00:10::1",
    "fd00:10::1%eth0",
  ]) {
    assert.equal(refusal(strict, { host, port: 80 }), "TG_ADDRESS_REFUSED", host);
    assert.ok(strict.admit({ host, port: 80 }, "tcp", "discovered") instanceof AdmittedAddress, host);
    assert.equal(refusal(lax, { host, port: 80 }), undefined, host);
  }
  for (const host of ["10.95.255.255", "10.112.0.0", "fd00:11::1"])
    assert.equal(refusal(strict, { host, port: 80 }), undefined, host);
  assert.ok(strict.admit({ host: "127.0.0.1", port: 80 }, "tcp", "discovered") instanceof AddressRefused);
});

test("text that is not an IP address is refused: names have to be resolved first", () => {
  for (const host of ["localhost", "127.1", "0x7f000001", "2130706433", ""])
    assert.equal(refusal(file, { host, port: 9000 }), "TG_ADDRESS_REFUSED", host);
});

test("a port is refused while any thread listens on it, and not after that", () => {
  const shared = OwnSockets.memoryFor(3);
  const main = new OwnSockets(shared, 0);
  const worker = new OwnSockets(shared, 1);
  const egress = new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES }, new OwnSockets(shared, 2));
  const address = { host: "127.0.0.1", port: 8081 };
  assert.equal(refusal(egress, address), undefined);
  const forgets = [
    worker.addPort("tcp", "bind", 8081),
    worker.addPort("tcp", "bind", 8081),
    main.addPort("tcp", "bind", 8081),
  ];
  for (const forget of forgets) {
    assert.equal(refusal(egress, address), "TG_LOOP");
    forget();
    forget();
  }
  assert.equal(refusal(egress, address), undefined);
  worker.addPort("tcp", "bind", 8081);
  // The thread has died, and this is its replacement.
  new OwnSockets(shared, 1);
  assert.equal(refusal(egress, address), undefined);
});

test("a connection that turns out to stay on this host is closed before anything is sent", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const young = new OwnSockets();
  const address = new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES }, young).admit({
    host: "127.0.0.1",
    port,
  });
  assert.ok(address instanceof AdmittedAddress);
  // As an address that was given to an interface after the first half of the check.
  young.addPort("tcp", "server", port);
  const { promise, resolve } = Promise.withResolvers<Error | undefined>();
  connect(address, 0, {
    onConnect: () => {
      throw new Error("connected");
    },
    onClose: resolve,
  });
  const error = await promise;
  assert.ok(error instanceof AddressRefused && error.code === "TG_ADDRESS_REFUSED", String(error));
});

// ── Unix sockets ──

class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "egress-"));
  readonly allowed = join(this.path, "allowed");
  readonly own = new OwnSockets();

  constructor(t: TestContext) {
    mkdirSync(this.allowed);
    t.after(() => rmSync(this.path, { recursive: true }));
  }

  async socket(t: TestContext, ...names: string[]): Promise<string> {
    const path = join(this.path, ...names);
    const server = createServer().listen(path);
    t.after(() => server.close());
    await once(server, "listening");
    return path;
  }

  refusal(provenance: Provenance, path: string): ErrorCode | undefined {
    return refusal(
      new Egress(
        { provenance, lookupRules: NO_LOOKUP_RULES, unixFolder: this.allowed, internalSocket: "/internal" },
        this.own,
      ),
      {
        path,
      },
    );
  }
}

test("an own Unix socket is refused by any of its paths", async (t) => {
  const folder = new Folder(t);
  const admin = await folder.socket(t, "allowed", "admin.sock");
  const forget = folder.own.addUnix(admin);
  const link = join(folder.allowed, "innocent.sock");
  symlinkSync(admin, link);
  symlinkSync(folder.allowed, join(folder.path, "elsewhere"));
  for (const path of [
    admin,
    link,
    join(folder.path, "elsewhere", "admin.sock"),
    `${folder.path}/./allowed//admin.sock`,
  ])
    for (const provenance of ["operator", "stream"] as const)
      assert.equal(folder.refusal(provenance, path), "TG_ADDRESS_REFUSED", path);
  forget();
  assert.equal(folder.refusal("operator", link), undefined);
});

test("a stream names Unix sockets below the configured folder only, after links are resolved", async (t) => {
  const folder = new Folder(t);
  const inside = await folder.socket(t, "allowed", "a.sock");
  const outside = await folder.socket(t, "b.sock");
  const link = join(folder.allowed, "link.sock");
  symlinkSync(outside, link);
  assert.equal(folder.refusal("stream", inside), undefined);
  for (const path of [outside, link, `${folder.allowed}/../b.sock`]) {
    assert.equal(folder.refusal("stream", path), "TG_ADDRESS_REFUSED", path);
    assert.equal(folder.refusal("operator", path), undefined, path);
  }
  assert.equal(refusal(stream, { path: inside }), "TG_ADDRESS_REFUSED");
  assert.equal(folder.refusal("stream", join(folder.allowed, "none.sock")), "TG_UPSTREAM_FAILED");
});

test("only files may name the socket of `internal` backends", () => {
  const options = { internalSocket: "/internal", unixFolder: "/" };
  assert.equal(
    refusal(new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES, ...options }, own), {
      path: "/internal",
    }),
    undefined,
  );
  assert.notEqual(
    refusal(new Egress({ provenance: "stream", lookupRules: NO_LOOKUP_RULES, ...options }, own), { path: "/internal" }),
    undefined,
  );
});

test("only the check creates admitted addresses", () => {
  const { options } = admitted({ host: "127.0.0.1", port: 1 });
  const Forged = AdmittedAddress as unknown as new (key: symbol, options: SocketAddress, egress: Egress) => unknown;
  assert.throws(() => new Forged(Symbol("egress"), options, file), TypeError);
});

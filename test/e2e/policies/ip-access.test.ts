import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";

const folder = mkdtempSync(join(tmpdir(), "ip-access-"));
const file = join(folder, "denied.txt");
const LIST = ["# from a feed", "203.0.113.0/24", "", "2001:db8:bad::/48  # a network"];
let gateway: TestGateway;

before(async () => {
  writeFileSync(file, LIST.join("\n"));
  const at = (pathPrefix: string, ipAccess: object) => ({
    matches: [{ path: { pathPrefix } }],
    policies: { ipAccess, directResponse: { status: 200 } },
  });
  gateway = await TestGateway.start({
    frontendPolicies: { http: { forwarded: { trustedProxies: ["127.0.0.1", "10.0.0.0/8"] } } },
    binds: [
      {
        port: 0,
        listeners: [
          {
            policies: { ipAccess: { deny: [{ file }] } },
            routes: [
              at("/", { deny: ["192.0.2.66"] }),
              at("/some", { allow: ["192.0.2.0/24", "203.0.113.1"], deny: ["192.0.2.9"] }),
            ],
          },
        ],
      },
    ],
    policies: [
      {
        name: { name: "all" },
        target: { gateway: { gatewayName: "default" } },
        policy: { ipAccess: { allow: ["0.0.0.0/0"], deny: ["192.0.2.7"] } },
      },
    ],
  });
});
after(async () => {
  await gateway.stop();
  rmSync(folder, { recursive: true });
});

/** The status for a client that the proxy at 127.0.0.1 reports. */
async function statusFor(reported: string, path = "/"): Promise<number> {
  const headers = { "x-forwarded-for": reported };
  return (await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers })).status;
}

test("deny beats allow, of every level", async () => {
  for (const [address, path, status] of [
    ["192.0.2.1", "/", 200],
    ["192.0.2.66", "/", 403],
    ["192.0.2.7", "/", 403],
    ["203.0.113.1", "/", 403],
    ["2001:db8::1", "/", 403],
    ["192.0.2.1", "/some", 200],
    ["192.0.2.9", "/some", 403],
    ["192.0.2.7", "/some", 403],
    ["203.0.113.1", "/some", 403],
    ["198.51.100.1", "/some", 403],
  ] as const)
    assert.equal(await statusFor(address, path), status, `${address} ${path}`);
  await gateway.until(() => gateway.lines.filter((line) => line["http.status"] === 403).length === 8, "the access log");
  const errors = gateway.lines.flatMap(({ error }) => (typeof error === "string" ? [error] : []));
  assert.match(errors[1] ?? "", /^authorization failed: 192\.0\.2\.7 is in deny \(192\.0\.2\.7\), at /);
  assert.match(
    errors[2] ?? "",
    /203\.0\.113\.1 is in deny \(203\.0\.113\.0\/24\), at binds\[0\]\.listeners\[0\]\.policies\.ipAccess/,
  );
  assert.match(errors.at(-1) ?? "", /198\.51\.100\.1 is not in allow/);
});

test("the client is the last address that is not a trusted proxy", async () => {
  for (const [reported, status] of [
    ["203.0.113.1, 192.0.2.1", 200],
    ["192.0.2.1, 203.0.113.1, 10.1.2.3", 403],
    ["192.0.2.1:4711", 200],
    ["[2001:db8:bad::1]:80", 403],
    ["unknown", 403],
  ] as const)
    assert.equal(await statusFor(reported), status, reported);
  const told = (): boolean =>
    gateway.lines.some(({ error }) =>
      String(error).includes('"unknown", as a trusted proxy reports the client, is not an IP address'),
    );
  await gateway.until(told, "the reason of the last response");
});

test("the address in a PROXY header is the client's, whatever the client claims", async () => {
  for (const mode of ["replace", "off"]) {
    await using local = await LocalGateway.start({
      frontendPolicies: {
        http: { forwarded: { mode, trustedProxies: ["127.0.0.1", "10.0.0.0/8"] } },
        proxyProtocol: { version: "v1", mode: "strict" },
      },
      binds: [
        {
          port: 0,
          listeners: [
            { routes: [{ policies: { ipAccess: { deny: ["203.0.113.1"] }, directResponse: { status: 200 } } }] },
          ],
        },
      ],
    });
    for (const [peer, reported, status] of [
      ["203.0.113.1", "192.0.2.1", 403],
      ["192.0.2.1", "203.0.113.1", 200],
      ["10.1.2.3", "192.0.2.1, 203.0.113.1", 403],
    ] as const) {
      const start = `PROXY TCP4 ${peer} 127.0.0.1 4000 80\r\nGET / HTTP/1.1\r\nHost: a\r\n`;
      const response = await RawPeer.ask(local.port(), `${start}X-Forwarded-For: ${reported}\r\n\r\n`);
      assert.equal(statusOf(response), status, `${mode}, ${peer} reports ${reported}`);
    }
  }
});

test("a file is followed, and a mistake in it leaves the former list", async () => {
  const messages = (begin: string): string[] =>
    gateway.lines.map(({ message }) => String(message)).filter((message) => message.startsWith(begin));
  writeFileSync(file, "198.51.100.0/24\n");
  await gateway.until(() => messages("configuration reloaded").length > 0, "the new list");
  assert.deepEqual([await statusFor("198.51.100.1"), await statusFor("203.0.113.1")], [403, 200]);
  writeFileSync(file, "192.0.2.0/24\n\n198.51.100.256\n");
  await gateway.until(() => messages("Failed to reload").length > 0, "the rejection");
  assert.match(
    messages("Failed to reload").join(),
    /ipAccess\.deny\[0\].*line 3: "198\.51\.100\.256" is not an IP address/s,
  );
  assert.deepEqual([await statusFor("198.51.100.1"), await statusFor("192.0.2.1")], [403, 200]);
});

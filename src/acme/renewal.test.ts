import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { makeSelfSigned } from "../tls/x509/self-signed.ts";
import { AcmeServer } from "./acme-server.ts";
import { renewAt, renewalInfo } from "./renewal.ts";

const NOW = Date.UTC(2026, 0, 1);
const HOUR = 60 * 60_000;

/** What is known after a server has suggested this window, and how long it wants not to be asked. */
function suggested(start: number, end: number, retryAfter: string, before?: Awaited<ReturnType<typeof renewalInfo>>) {
  const fetch = async (url: string) => {
    const body = url.endsWith("/directory")
      ? { newNonce: "n", newAccount: "a", newOrder: "o", renewalInfo: "https://acme.example/renewal" }
      : { suggestedWindow: { start: new Date(start).toISOString(), end: new Date(end).toISOString() } };
    return { status: 200, headers: ["retry-after", retryAfter], body: Buffer.from(JSON.stringify(body)) };
  };
  const server = new AcmeServer("https://acme.example/directory", undefined, fetch, new AbortController().signal);
  return renewalInfo(server, "id", before, NOW);
}

test("a window that ends before it begins is ignored, and a time in the same window stays", async () => {
  assert.equal(await suggested(NOW + HOUR, NOW, "60"), undefined);
  const first = await suggested(NOW, NOW + HOUR, "60");
  assert.ok(first !== undefined && first.at >= NOW && first.at <= NOW + HOUR);
  const chosen = { ...first, at: NOW + 7 };
  assert.equal((await suggested(NOW, NOW + HOUR, "60", chosen))?.at, NOW + 7);
  assert.notEqual((await suggested(NOW + HOUR, NOW + 2 * HOUR, "60", chosen))?.at, NOW + 7);
});

test("a server is asked again after a minute at the earliest and a day at the latest", async () => {
  for (const [said, minutes] of [
    ["0", 1],
    ["3600", 60],
    ["99999999", 24 * 60],
  ] as const)
    assert.equal((await suggested(NOW, NOW + HOUR, said))?.askAgainAt, NOW + minutes * 60_000);
});

test("a server can neither let a certificate expire nor have it renewed at once", () => {
  const certificate = new X509Certificate(makeSelfSigned("shop.example", NOW).cert);
  const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
  const share = (at: number) => {
    const info = { id: "id", at, window: [at, at + 1], askAgainAt: 0 } as const;
    return (renewAt("shop.example", certificate, info) - from) / (to - from);
  };
  assert.deepEqual([share(0), share(to + HOUR)], [0.01, 0.9]);
});

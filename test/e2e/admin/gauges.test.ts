import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { rawClient, Upstream } from "../trace/support.ts";

async function metric(gateway: TestGateway, name: string): Promise<string[]> {
  const text = await (await fetch(`${gateway.url("stats")}/metrics`)).text();
  return text.split("\n").filter((line) => line.startsWith(name));
}

test("requests are counted while they are in progress", async () => {
  const upstream = await Upstream.start();
  await using gateway = await TestGateway.start({ ...proxyTo(upstream.address), config: { workerThreads: 2 } });
  const hanging = upstream.hang("/");
  const client = await rawClient(gateway.port(), "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
  const { response } = await hanging;
  assert.deepEqual(await metric(gateway, "tracegate_requests_in_flight"), ["tracegate_requests_in_flight 1"]);
  response.end();
  for await (const _ of client);
  assert.deepEqual(await metric(gateway, "tracegate_requests_in_flight"), ["tracegate_requests_in_flight 0"]);
  await upstream.close();
});

test("metrics show when the certificates of listeners expire", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  const [one, soon] = [ca.issue("a.test"), ca.issueExpired("b.test")];
  const tls = { cert: one.certFile, key: one.keyFile };
  const several = { ...tls, otherCertificates: [{ cert: soon.certFile, key: soon.keyFile }] };
  const routes = [{ name: "r", policies: { directResponse: { status: 200 } } }];
  const secured = { name: "secured", protocol: "HTTPS", hostname: "a.test", tls, routes };
  const both = { ...secured, name: "both", hostname: "b.test", tls: several };
  await using gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [secured, both] }] });
  const name = "tracegate_certificate_expiry_timestamp_seconds";
  const expiry = ({ cert }: { readonly cert: string }) => Date.parse(new X509Certificate(cert).validTo) / 1000;
  assert.deepEqual(await metric(gateway, name), [
    `${name}{bind="bind/0",gateway="default/default",listener="secured"} ${expiry(one)}`,
    `${name}{bind="bind/0",gateway="default/default",listener="both"} ${expiry(soon)}`,
  ]);
});

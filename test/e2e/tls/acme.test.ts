import assert from "node:assert/strict";
import { test } from "node:test";
import type { CertificatesAnswer } from "../../../src/admin/plane/certificates.ts";
import type { ConfigStatus } from "../../../src/admin/plane/config-status.ts";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { AcmeTestServer } from "../../helpers/acme-server.ts";
import { noOpenssl } from "../../helpers/certificates.ts";
import { freePorts } from "../../helpers/free-ports.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { until } from "../../helpers/until.ts";
import { traceOf } from "../trace/support.ts";
import { get, logged, tlsConnect } from "./support.ts";

/** What the trace of a request says about it as a challenge. */
function resultsIn(events: readonly TraceEvent[]): string[] {
  return events.flatMap(({ message }) => (message.type === "acmeChallenge" ? [message.result] : []));
}

/** The certificate that clients get for a name; undefined: the handshake fails. */
async function served(port: number, servername: string): Promise<string | undefined> {
  try {
    const { socket } = await tlsConnect(port, { servername, rejectUnauthorized: false });
    const issuer = socket.getPeerX509Certificate()?.issuer;
    socket.destroy();
    return issuer;
  } catch {
    return undefined;
  }
}

test("until its certificate is issued a listener refuses or is self-signed, then it serves what was issued", {
  skip: noOpenssl,
}, async () => {
  await using server = await AcmeTestServer.start();
  const held = Promise.withResolvers<void>();
  server.faults.hold = held.promise;
  const [http = 0, tls = 0] = await freePorts(2);
  server.faults.httpPort = http;
  server.faults.tlsPort = tls;
  const acme = { directory: server.directory, root: server.authority.certFile };
  const reply = (body: string) => ({ policies: { directResponse: { status: 200, body } } });
  const config = (body: string) => ({
    gateways: {
      plain: { port: http },
      secure: {
        port: tls,
        listeners: [
          { hostname: "a.example", tls: { acme } },
          { hostname: "b.example", tls: { acme: { ...acme, challenge: "http-01", untilIssued: "selfSigned" } } },
        ],
      },
    },
    routes: [{ gateways: ["plain", "secure"], ...reply(body) }],
  });
  await using gateway = await TestGateway.start(config("before"));
  const certificates = async () =>
    ((await (await fetch(`${gateway.url("admin")}/certificates`)).json()) as CertificatesAnswer).certificates;
  await until(() => server.orders.length === 2, "both orders");
  assert.equal(await served(tls, "a.example"), undefined);
  assert.equal(await served(tls, "b.example"), "CN=b.example");
  await logged(gateway, {
    error: "TLS handshake failed: there is no certificate for a.example yet; tgctl certs says why",
  });
  const before = (await certificates()).map(({ names, state, untilIssued, next }) => [names, state, untilIssued, next]);
  assert.deepEqual(before, [
    [["a.example"], "pending", "refuse", { step: "order", at: null }],
    [["b.example"], "pending", "selfSigned", { step: "order", at: null }],
  ]);
  const pending = async () =>
    ((await (await fetch(`${gateway.url("admin")}/config/status`)).json()) as ConfigStatus).pendingCertificates;
  const { count, first = [] } = (await pending()) ?? {};
  assert.deepEqual(
    [count, first.map(({ name, state }) => [name, state])],
    [
      2,
      [
        ["a.example", "pending"],
        ["b.example", "pending"],
      ],
    ],
  );
  // A reload while the server has not asked yet.
  assert.equal(await gateway.reconfigure(config("after")), "applied");
  const validation = async (token: string) =>
    (await fetch(`http://127.0.0.1:${http}/.well-known/acme-challenge/${token}`)).text();
  const { token = "", thumbprint } = server.orders.find(({ name }) => name === "b.example") ?? {};
  const answered = await traceOf(gateway, async () => {
    assert.equal(await validation(token), `${token}.${thumbprint}`);
  });
  assert.deepEqual(resultsIn(answered), ["answered"]);
  assert.ok(answered.every(({ message }) => message.type !== "routeSelection"));
  // Servers follow redirects to HTTPS.
  const redirected = await get(tls, "b.example", { rejectUnauthorized: false }, `/.well-known/acme-challenge/${token}`);
  assert.equal(redirected.body, `${token}.${thumbprint}`);
  await logged(gateway, { message: "a validation by http-01 was answered", name: `127.0.0.1:${http}` });
  // Tokens of others are requests like any other, as are names of other files.
  const passed = await traceOf(gateway, async () => {
    assert.equal(await validation("aaaaaaaaaaaaaaaaaaaaaaaa"), "after");
  });
  assert.deepEqual(resultsIn(passed), ["unknown"]);
  assert.equal(await validation("a.example.tls-alpn"), "after");
  // It is validated by http-01, so the listener takes this for a handshake with a client that speaks no protocol it knows.
  await assert.rejects(tlsConnect(tls, { servername: "b.example", ALPNProtocols: ["acme-tls/1"] }), {
    code: "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
  });
  const other = await traceOf(gateway, () => get(tls, "b.example", { rejectUnauthorized: false }, "/"));
  assert.deepEqual(resultsIn(other), []);
  held.resolve();
  const trusted = { ca: server.authority.cert };
  for (const name of ["a.example", "b.example"]) {
    await until(async () => (await served(tls, name)) === "CN=ACME test CA", `the certificate of ${name}`);
    assert.equal((await get(tls, name, trusted)).body, "after");
  }
  assert.equal(server.orders.length, 2);
  for (const { state, issuer, source, next, lastError } of await certificates()) {
    assert.deepEqual([state, issuer, source, next?.step, lastError], ["valid", "ACME test CA", "acme", "renew", null]);
    assert.ok(Date.parse(next?.at ?? "") > Date.now());
  }
  assert.deepEqual(await pending(), { count: 0, first: [] });
  const metrics = await gateway.metricsText();
  assert.match(metrics, /^tracegate_certificate_orders_total\{name="a\.example",.*result="issued"\} 1$/m);
  assert.match(metrics, /^tracegate_certificate_expiry_timestamp_seconds\{.*listener="secure\/listener0"\} \d+$/m);
});

test("keys and credentials of ACME are in nothing that the admin server shows of the configuration", async () => {
  const acme = (more: object) => ({ tls: { acme: { directory: "https://localhost:1/directory", ...more } } });
  const config = (round: string) => ({
    gateways: {
      secure: {
        port: 0,
        listeners: [
          { hostname: "a.example", ...acme({ externalAccount: { keyId: "me", hmacKey: `pl4nted${round}` } }) },
          {
            hostname: "b.example",
            ...acme({
              challenge: "dns-01",
              dns: { url: "https://localhost:1/hook", authorization: `Bearer pl4nted${round}` },
            }),
          },
        ],
      },
    },
    routes: [{ name: round, gateways: ["secure"], policies: { directResponse: { status: 200, body: "" } } }],
  });
  await using gateway = await TestGateway.start(config("first"));
  assert.equal(await gateway.reconfigure({ ...config("second"), nonsense: true }), "rejected");
  const shown = async (path: string) => (await fetch(`${gateway.url("admin")}${path}`)).text();
  for (const [path, part] of [
    ["/config_dump", "a.example"],
    ["/config/parts", "listener"],
    ["/config/parts?search=pl4nted", '"parts":'],
    ["/config/difference", "hmacKey"],
    ["/config/status", "nonsense"],
    ["/overview", "pendingCertificates"],
    ["/certificates", "b.example"],
  ] as const) {
    const text = await shown(path);
    assert.ok(text.includes(part), `${path}: ${text}`);
    assert.doesNotMatch(text, /pl4nted/, path);
  }
  assert.doesNotMatch(JSON.stringify(gateway.lines), /pl4nted/);
});

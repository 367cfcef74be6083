import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { Browser } from "../../helpers/browser.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { CLIENT, enter, IdentityProvider, logIn } from "../../helpers/identity-provider.ts";
import { RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";

const OIDC_COOKIE_SECRET = randomBytes(32).toString("hex");

/** One listener whose requests go to `port`, with policies of the gateway phase. */
function configuration(port: number, policies: object, routePolicies: object): object {
  const route = { policies: routePolicies, backends: [{ host: `127.0.0.1:${port}` }] };
  return {
    config: { workerThreads: 2 },
    binds: [{ port: 0, listeners: [{ name: "web", policies, routes: [route] }] }],
  };
}

test("a gateway with two threads discovers its provider, and shows no secrets", async () => {
  let token = "";
  await using upstream = await RawUpstream.answering((request) => {
    token = valuesOf(request, "x-backend-id").join();
    return reply(`${valuesOf(request, "x-user").join()} with ${valuesOf(request, "cookie").join("|") || "no cookies"}`);
  });
  await using gateway = await TestGateway.start(configuration(upstream.port, {}, {}), { env: { OIDC_COOKIE_SECRET } });
  const url = `http://127.0.0.1:${gateway.port()}`;
  await using provider = await IdentityProvider.start(`${url}/callback`);
  const oidc = {
    issuer: provider.issuer,
    ...CLIENT,
    redirectURI: `${url}/callback`,
    scopes: ["email"],
    accessTokenHeader: "X-Backend-Id",
  };
  const user = { request: { set: { "x-user": "jwt.email" } } };
  assert.equal(await gateway.reconfigure(configuration(upstream.port, { oidc }, { transformations: user })), "applied");

  const browser = new Browser();
  assert.match((await logIn(browser, `${url}/a`)).body, /^jo@example\.com with (?!.*tracegate_oidc_)/);
  // Each connection may reach another thread.
  const pages = await Promise.all(
    Array.from({ length: 8 }, () => browser.request(url, { headers: { connection: "close" } })),
  );
  assert.deepEqual([...new Set(pages.map((page) => page.status))], [200]);

  // The header is redacted, though its name does not suggest a secret.
  const forwarding = await traceOf(gateway, async () => () => browser.request(url));
  assert.match(forwarding, /x-backend-id/);
  assert.ok(token.length > 20);

  let callback = "";
  const trace = await traceOf(gateway, async () => {
    const other = new Browser();
    const back = await enter(other, await other.open(url), "eve");
    callback = back.headers.get("location") ?? "";
    return () => other.request(callback);
  });
  assert.match(
    trace,
    /"policy","kind":"oidc","result":\{"type":"apply","details":"the login is complete[^}]*"data":\{"action":"callback"/,
  );
  assert.match(trace, /"scope":\["oidc"\]/);

  const series = `issuer="${provider.issuer}",outcome="completed"`;
  assert.ok((await gateway.metricsText()).includes(`tracegate_oidc_logins_total{${series}} 2`));
  const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).text();
  assert.match(dump, /"clientSecret":\s*"<redacted>"/);
  const [, session = ""] = [...browser.cookies(url)].find(([name]) => name.startsWith("tracegate_oidc_s_")) ?? [];
  assert.ok(session.length > 100);
  const told = `${trace}${forwarding}${dump}${JSON.stringify(gateway.lines)}`;
  for (const secret of [
    CLIENT.clientSecret,
    encodeURIComponent(CLIENT.clientSecret),
    OIDC_COOKIE_SECRET,
    session,
    token,
    "eyJ",
    ...secretsOf(callback),
  ])
    assert.ok(!told.includes(secret), secret);
});

/** What a provider sends to the gateway through the browser. */
function secretsOf(callback: string): string[] {
  const { searchParams } = new URL(callback);
  return ["code", "state"].map((name) => searchParams.get(name) ?? assert.fail(`no ${name} in ${callback}`));
}

/** A trace of the request that `prepare` leaves to send; its own requests come before the watch. */
async function traceOf(gateway: TestGateway, prepare: () => Promise<() => Promise<unknown>>): Promise<string> {
  const act = await prepare();
  const response = await fetch(`${gateway.url("admin")}/debug/trace`, { method: "POST" });
  await act();
  return response.text();
}

test("a provider that cannot be reached is a warning with the position of the URL", async () => {
  const oidc = { issuer: "http://127.0.0.1:1", ...CLIENT, redirectURI: "http://127.0.0.1/callback" };
  await using gateway = await TestGateway.start(configuration(1, { oidc }, {}), { env: { OIDC_COOKIE_SECRET } });
  const warning =
    /\d+:\d+: warning: .*oidc\.issuer: cannot fetch http:\/\/127\.0\.0\.1:1\/\.well-known\/openid-configuration: .*; requests that need it get 503/;
  await gateway.until(() => gateway.lines.some(({ message }) => warning.test(String(message))), "the warning");
  assert.ok(!JSON.stringify(gateway.lines).includes(CLIENT.clientSecret));
});

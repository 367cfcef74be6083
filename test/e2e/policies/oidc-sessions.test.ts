import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { Oidc } from "../../../src/policies/oidc/schema.ts";
import { Browser, type Page } from "../../helpers/browser.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { CLIENT, IdentityProvider, logIn, withRefreshTokens } from "../../helpers/identity-provider.ts";
import { RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";

const KEY = new Uint8Array(randomBytes(32));
/** Seconds that the provider's access tokens live. */
const LIFE = 60;

/** Two replicas of a gateway, which share the key of the cookies and nothing else, and a provider that rotates refresh tokens. */
class Site {
  readonly provider: IdentityProvider;
  readonly url: string;
  readonly #planes: readonly TestPlane[];
  readonly #upstream: RawUpstream;

  private constructor(planes: readonly TestPlane[], provider: IdentityProvider, upstream: RawUpstream) {
    this.#planes = planes;
    this.provider = provider;
    this.#upstream = upstream;
    this.url = `http://127.0.0.1:${planes[0]?.port}`;
  }

  static async start(changes: Partial<Oidc> = {}): Promise<Site> {
    const upstream = await RawUpstream.answering((request) =>
      reply(`${request.start} with ${valuesOf(request, "authorization").join("|") || "no token"}`),
    );
    const planes = [
      await TestPlane.start(upstream.port, { oidcCookieKey: KEY }),
      await TestPlane.start(upstream.port, { oidcCookieKey: KEY }),
    ];
    const url = `http://127.0.0.1:${planes[0]?.port}`;
    const client = {
      backchannel_logout_uri: `${url}/logout/provider`,
      backchannel_logout_session_required: true,
      post_logout_redirect_uris: [`${url}/bye`],
    };
    const provider = await IdentityProvider.start(
      `${url}/callback`,
      "client_secret_basic",
      withRefreshTokens({ client }),
    );
    const oidc: Oidc = {
      ...provider.policyAt(url),
      accessTokenHeader: "Authorization",
      ...changes,
    };
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    for (const plane of planes) await plane.configure([{ target, policies: { oidc } }]);
    return new Site(planes, provider, upstream);
  }

  /** URL of the second replica. */
  get other(): string {
    return `http://127.0.0.1:${this.#planes[1]?.port}`;
  }

  /** What the first replica has counted, by the labels after the issuer. */
  counted(metric: "oidc_logins_total" | "oidc_refreshes_total" | "oidc_logouts_total"): Record<string, unknown> {
    const samples = this.#planes[0]?.metrics.snapshot()[metric] ?? [];
    return Object.fromEntries(samples.map(({ labels: [_issuer, ...others], value }) => [others.join(" "), value]));
  }

  logged(part: string) {
    return this.#planes[0]?.logged(part);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const plane of this.#planes) await plane[Symbol.asyncDispose]();
    await this.provider[Symbol.asyncDispose]();
    await this.#upstream[Symbol.asyncDispose]();
  }
}

/** Time of gateway and provider, which passes only when it is told to. */
function clock(t: TestContext): (seconds: number) => void {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  return (seconds) => t.mock.timers.tick(seconds * 1000);
}

/** A browser with the same cookies, such as one that did not get the last response. */
function copyOf(browser: Browser, url: string): Browser {
  const copy = new Browser();
  for (const [name, value] of browser.cookies(url)) if (name.startsWith("tracegate_")) copy.setCookie(url, name, value);
  return copy;
}

function tokenIn({ body }: Page): string {
  return / with Bearer (\S+)$/.exec(body)?.[1] ?? assert.fail(body);
}

const FETCH = { headers: { "sec-fetch-dest": "empty" } };

test("backends get the access token and not what the client sends; the session outlives it, with a new one", async (t) => {
  const tick = clock(t);
  await using site = await Site.start();
  const browser = new Browser();
  const first = tokenIn(await logIn(browser, site.url));
  const forged = await browser.request(site.url, { headers: { authorization: "Bearer forged" } });
  assert.equal(tokenIn(forged), first);
  assert.equal(site.provider.tokenCalls, 1);
  for (let i = 0; i < 3; i++) {
    tick(LIFE - 2);
    const page = await browser.request(site.url, FETCH);
    assert.notEqual(tokenIn(page), first);
    assert.equal(page.headers.get("cache-control"), "private");
  }
  assert.equal(site.provider.tokenCalls, 4);
  assert.deepEqual([site.provider.refused, site.provider.reused], [[], false]);
});

test("requests of two tabs refresh a session once, also those that come late with the old cookie", async (t) => {
  const tick = clock(t);
  await using site = await Site.start();
  const browser = new Browser();
  await logIn(browser, site.url);
  const late = copyOf(browser, site.url);
  tick(2 * LIFE);
  const pages = await Promise.all(Array.from({ length: 20 }, () => browser.request(site.url, FETCH)));
  assert.equal(new Set(pages.map(tokenIn)).size, 1);
  assert.equal(site.provider.tokenCalls, 2);
  assert.equal(tokenIn(await late.request(site.url, FETCH)), tokenIn(pages[0] ?? assert.fail()));
  assert.equal((await late.request(site.url)).headers.getSetCookie().length, 0, "it has the new cookie now");
  assert.deepEqual(site.counted("oidc_refreshes_total"), { renewed: 1 });
  assert.equal(site.provider.tokenCalls, 2);
  assert.deepEqual([site.provider.refused, site.provider.reused], [[], false]);
});

test("a refresh token that another replica has used before keeps the session until its access token expires", async (t) => {
  const tick = clock(t);
  await using site = await Site.start();
  const browser = new Browser();
  await logIn(browser, site.url);
  const late = copyOf(browser, site.url);
  tick(LIFE - 2);
  await browser.request(site.other, FETCH);
  assert.equal((await late.request(site.url, FETCH)).status, 200);
  assert.equal(site.provider.reused, true);
  tick(3);
  assert.equal((await late.request(site.url, FETCH)).status, 401);
  assert.equal((await late.request(site.url)).status, 302);
  assert.equal((await logIn(late, site.url)).status, 200);
});

test("a revoked refresh token ends the session: 401 for scripts, a login for pages", async (t) => {
  const tick = clock(t);
  await using site = await Site.start();
  const browser = new Browser();
  const token = tokenIn(await logIn(browser, site.url));
  // Revokes the grant, and with it the refresh token that only the gateway knows.
  const credentials = Buffer.from(
    `${CLIENT.clientId}:${encodeURIComponent(CLIENT.clientSecret).replaceAll("%20", "+")}`,
  ).toString("base64");
  const revoked = await fetch(`${site.provider.issuer}/token/revocation`, {
    method: "POST",
    headers: { authorization: `Basic ${credentials}` },
    body: new URLSearchParams({ token }),
  });
  assert.equal(revoked.status, 200);
  tick(LIFE + 1);
  const script = await browser.request(site.url, FETCH);
  assert.equal(script.status, 401);
  assert.equal((await browser.request(`${site.url}/page`)).status, 302);
  const again = await browser.request(`${site.url}/page`);
  assert.equal(again.status, 302);
  assert.equal(site.provider.tokenCalls, 2, "the provider is not asked again");
  assert.deepEqual(site.counted("oidc_logins_total"), { begun: 3, completed: 1 });
  assert.deepEqual(site.counted("oidc_refreshes_total"), { refused: 1 });
  const page = await browser.open(`${site.url}/page`);
  assert.match(page.body, /^GET \/page /);
});

test("a provider that fails does not end a session whose tokens are valid; later it is asked again", async (t) => {
  const tick = clock(t);
  await using site = await Site.start();
  const browser = new Browser();
  await logIn(browser, site.url);
  tick(LIFE - 2);
  site.provider.failing = 500;
  assert.equal((await browser.request(site.url, FETCH)).status, 200);
  assert.equal((await browser.request(site.url, FETCH)).status, 200);
  assert.equal(site.provider.tokenCalls, 2);
  tick(3);
  assert.equal((await browser.request(site.url, FETCH)).status, 503);
  tick(5);
  site.provider.failing = undefined;
  assert.equal((await browser.request(site.url, FETCH)).status, 200);
});

test("a session ends after its lifetime, though it was refreshed, and when it was not used", async (t) => {
  const tick = clock(t);
  await using site = await Site.start({ session: { lifetime: ms(300_000), idleTimeout: ms(100_000) } });
  const browser = new Browser();
  await logIn(browser, site.url);
  for (let i = 0; i < 3; i++) {
    tick(90);
    assert.equal((await browser.request(site.url, FETCH)).status, 200);
  }
  tick(31);
  assert.equal((await browser.request(site.url, FETCH)).status, 401);
  assert.equal((await browser.open(site.url)).status, 200);
  tick(101);
  assert.equal((await browser.request(site.url, FETCH)).status, 401);
});

/** The settings of a gateway with both logouts. */
function endings(): Partial<Oidc> {
  return { logout: { path: "/logout", backChannelPath: "/logout/provider" } };
}

test("a logout ends the session here, for copies of the cookie too, and at the provider", async () => {
  await using site = await Site.start(endings());
  const browser = new Browser();
  await logIn(browser, site.url);
  const copy = copyOf(browser, site.url);
  const out = await browser.request(`${site.url}/logout`, { headers: { referer: `${site.url}/a` } });
  assert.equal(out.status, 200);
  assert.match(out.body, /You are logged out/);
  assert.deepEqual(
    [...browser.cookies(site.url).keys()].filter((name) => name.startsWith("tracegate_")),
    [],
  );
  assert.equal((await copy.request(site.url, FETCH)).status, 401);
});

test("the provider's logout is told who logs out, and returns the browser to the application", async () => {
  await using site = await Site.start();
  const endSessionEndpoint = `${site.provider.issuer}/session/end`;
  await using other = await Site.start({ ...endings(), endSessionEndpoint });
  const browser = new Browser();
  await logIn(browser, other.url);
  const out = await browser.request(`${other.url}/logout`, { method: "POST" });
  assert.equal(out.status, 302);
  const { origin, pathname, searchParams } = new URL(out.headers.get("location") ?? "");
  assert.equal(origin + pathname, endSessionEndpoint);
  assert.equal(searchParams.get("client_id"), CLIENT.clientId);
  assert.match(searchParams.get("id_token_hint") ?? "", /^eyJ/);
});

test("another site cannot log users out: its links ask first, its forms are rejected", async () => {
  await using site = await Site.start(endings());
  const browser = new Browser();
  await logIn(browser, site.url);
  for (const headers of [{ "sec-fetch-site": "cross-site" }, { referer: "http://evil.example.com/" }, {}]) {
    const asked = await browser.request(`${site.url}/logout`, { headers });
    assert.equal(asked.status, 200);
    assert.match(asked.body, /<form method="post" action="\/logout">/);
  }
  for (const headers of [{ "sec-fetch-site": "same-site" }, { origin: "http://evil.example.com" }, { origin: "null" }])
    assert.equal((await browser.request(`${site.url}/logout`, { method: "POST", headers })).status, 403);
  assert.equal((await browser.request(site.url, FETCH)).status, 200);
  assert.deepEqual(site.counted("oidc_logouts_total"), { "user foreignLogout": 3 });
  const own = await browser.submit(await browser.request(`${site.url}/logout`), {});
  assert.match(own.body, /You are logged out/);
  assert.equal((await browser.request(site.url, FETCH)).status, 401);
});

test("a logout at the provider ends the session here", async () => {
  await using site = await Site.start(endings());
  const [browser, other] = [new Browser(), new Browser()];
  await logIn(browser, site.url);
  await logIn(other, site.url, "eve");
  const form = await browser.open(`${site.provider.issuer}/session/end`);
  await browser.follow(await browser.submit(form, { logout: "yes" }));
  await site.logged("/logout/provider");
  assert.equal((await browser.request(site.url, FETCH)).status, 401);
  assert.deepEqual(site.counted("oidc_logouts_total"), { "provider ended": 1 });
  assert.equal((await other.request(site.url, FETCH)).status, 200, "another user");
  await logIn(browser, site.url);
  assert.equal((await browser.request(site.url, FETCH)).status, 200);
});

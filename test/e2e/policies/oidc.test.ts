import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { LoginFlow } from "../../../src/policies/oidc/flow.ts";
import type { Oidc } from "../../../src/policies/oidc/schema.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { DEPS } from "../../../src/policies/testing/context.ts";
import { Browser } from "../../helpers/browser.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { enter, IdentityProvider, logIn } from "../../helpers/identity-provider.ts";
import { RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";

const KEY = new Uint8Array(randomBytes(32));

/** A gateway in front of an upstream that shows which cookies it was sent, and a provider to log in with. */
class Site {
  readonly plane: TestPlane;
  readonly provider: IdentityProvider;
  readonly upstream: RawUpstream;
  readonly url: string;
  readonly #oidc: Oidc;

  private constructor(plane: TestPlane, provider: IdentityProvider, upstream: RawUpstream, url: string, oidc: Oidc) {
    this.plane = plane;
    this.provider = provider;
    this.upstream = upstream;
    this.url = url;
    this.#oidc = oidc;
  }

  static async start(more: PolicySet = {}, changes: Partial<Oidc> = {}): Promise<Site> {
    const upstream = await RawUpstream.answering((request) =>
      reply(`${request.start} with ${valuesOf(request, "cookie").join("|") || "no cookies"}`),
    );
    const plane = await TestPlane.start(upstream.port, { oidcCookieKey: KEY });
    const url = `http://127.0.0.1:${plane.port}`;
    const post = changes.tokenEndpointAuth === "clientSecretPost";
    const provider = await IdentityProvider.start(
      `${url}/callback`,
      post ? "client_secret_post" : "client_secret_basic",
    );
    const oidc: Oidc = {
      ...provider.policyAt(url),
      ...changes,
    };
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    await plane.configure([{ target, policies: { ...more, oidc } }]);
    return new Site(plane, provider, upstream, url, oidc);
  }

  /** A session whose id token has expired. */
  expiredSession(): [string, string] {
    const { sessions } = new LoginFlow(this.#oidc, KEY, DEPS.fetch);
    const claims = { sub: "jo", exp: Math.floor(Date.now() / 1000) - 1 };
    const [cookie = ""] = sessions.issue(sessions.begin({ id: { token: "id", claims }, access: "a" }), new Map());
    const [, name = "", value = ""] = /^([^=]+)=([^;]+)/.exec(cookie) ?? [];
    return [name, value];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.plane[Symbol.asyncDispose]();
    await this.provider[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
  }
}

function sessionOf(browser: Browser, url: string): [string, string] {
  const found = [...browser.cookies(url)].find(([name]) => name.startsWith("tracegate_oidc_s_"));
  assert.ok(found !== undefined, "there is a session");
  return found;
}

test("a browser logs in, returns to the original URL, and stays logged in", async () => {
  await using site = await Site.start();
  const browser = new Browser();
  browser.setCookie(site.url, "theme", "dark");
  const page = await logIn(browser, `${site.url}/shop/cart?page=2&q=a%20b`);
  assert.equal(page.status, 200);
  assert.match(page.body, /^GET \/shop\/cart\?page=2&q=a%20b HTTP\/1\.1 with /);
  assert.match(page.body, /theme=dark/);
  assert.doesNotMatch(page.body, /tracegate_oidc_/);
  const again = await browser.request(`${site.url}/other`);
  assert.equal(again.status, 200);
  assert.equal(site.provider.tokenCalls, 1);
  const { "http.path": back } = await site.plane.logged("/callback?");
  assert.match(String(back), /[?&]code=<redacted>(&|$)/);
  assert.match(String(back), /[?&]state=<redacted>(&|$)/);
  // Elsewhere `state` means something else.
  await browser.request(`${site.url}/zip?state=CA&code=90210`);
  await site.plane.logged("/zip?state=CA&code=<redacted>");
  const own = [...browser.cookies(site.url).keys()].filter((name) => name.startsWith("tracegate_oidc_"));
  assert.deepEqual(own, [sessionOf(browser, site.url)[0]]);
});

test("claims can be used in expressions", async () => {
  const rule = { mode: "allow", expression: 'jwt.email == "jo@example.com"' } as const;
  await using site = await Site.start({ authorization: { rules: [rule] } });
  assert.equal((await logIn(new Browser(), site.url, "jo")).status, 200);
  const refused = await logIn(new Browser(), site.url, "eve");
  assert.equal(refused.status, 403);
  assert.equal(refused.body, "authorization failed");
});

test("the secret may be sent to the token endpoint in the body", async () => {
  await using site = await Site.start({}, { tokenEndpointAuth: "clientSecretPost" });
  assert.equal((await logIn(new Browser(), site.url)).status, 200);
});

test("a callback works once", async () => {
  await using site = await Site.start();
  const browser = new Browser();
  const back = await enter(browser, await browser.open(site.url));
  const callback = back.headers.get("location") ?? "";
  const [transaction = ["", ""]] = [...browser.cookies(site.url)].filter(([name]) =>
    name.startsWith("tracegate_oidc_t_"),
  );
  assert.equal((await browser.open(callback)).status, 200);
  const again = await browser.open(callback);
  assert.equal(again.status, 400);
  assert.equal(again.body, "oidc failure");
  // Even with the kept cookie: the provider knows that the code has been used.
  browser.setCookie(site.url, ...transaction);
  const replayed = await browser.request(callback);
  assert.equal(replayed.status, 400);
  assert.equal(replayed.body, "oidc failure");
  const line = await site.plane.logged("the provider rejects the code");
  assert.match(String(line.error), /the provider rejects the code: the token endpoint said invalid_grant$/);
});

test("a callback belongs to the browser that began the login", async () => {
  await using site = await Site.start();
  const attacker = new Browser();
  const back = await enter(attacker, await attacker.open(site.url), "attacker");
  const victim = new Browser();
  const page = await victim.open(back.headers.get("location") ?? "");
  assert.equal(page.status, 400);
  assert.equal(page.body, "oidc failure");
  assert.equal(victim.cookies(site.url).size, 0);
});

test("an error of the provider is reported, and a new login may succeed", async () => {
  await using site = await Site.start();
  const browser = new Browser();
  const form = await browser.open(site.url);
  const page = await browser.open(`${form.url.href}/abort`);
  assert.equal(page.status, 400);
  assert.equal(page.body, "oidc failure");
  await site.plane.logged("oidc failure: the provider returned an error: access_denied");
  assert.deepEqual(
    [...browser.cookies(site.url).keys()].filter((name) => name.startsWith("tracegate_")),
    [],
  );
  assert.equal((await logIn(browser, site.url)).status, 200);
});

test("an expired session leads to a new login, for which the provider may still have a session", async () => {
  await using site = await Site.start();
  const browser = new Browser();
  await logIn(browser, site.url);
  const [name, value] = site.expiredSession();
  assert.equal(name, sessionOf(browser, site.url)[0]);
  browser.setCookie(site.url, name, value);
  const page = await browser.open(`${site.url}/again`);
  assert.equal(page.status, 200);
  assert.match(page.body, /^GET \/again /);
  assert.equal(site.provider.tokenCalls, 2);
});

test("two tabs log in at the same time, and each returns to its own URL", async () => {
  await using site = await Site.start();
  const browser = new Browser();
  const [first, second] = [await browser.open(`${site.url}/first`), await browser.open(`${site.url}/second`)];
  const returns = [await enter(browser, second), await enter(browser, first)];
  const [two, one] = await Promise.all(returns.map((back) => browser.follow(back)));
  assert.match(one?.body ?? "", /^GET \/first /);
  assert.match(two?.body ?? "", /^GET \/second /);
});

test("a login never redirects to another site", async () => {
  await using site = await Site.start();
  for (const path of ["//evil.example.com/x", "/\\evil.example.com", "/@evil.example.com"]) {
    const browser = new Browser();
    const location = await locationAfterLogin(browser, site.url + path);
    assert.equal(new URL(location).origin, site.url, location);
  }
});

/** Where the callback sends the browser. */
async function locationAfterLogin(browser: Browser, url: string): Promise<string> {
  const back = await enter(browser, await browser.open(url));
  const done = await browser.request(back.headers.get("location") ?? "");
  assert.equal(done.status, 302);
  return done.headers.get("location") ?? "";
}

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { Oidc, PolicySet } from "../../../src/ir/policies.ts";
import { Browser, type Page } from "../../helpers/browser.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { CLIENT, IdentityProvider } from "../../helpers/identity-provider.ts";
import { RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";

const KEY = new Uint8Array(randomBytes(32));

/** A gateway in front of an upstream that shows which cookies it was sent, and a provider to log in with. */
class Site {
  readonly plane: TestPlane;
  readonly provider: IdentityProvider;
  readonly upstream: RawUpstream;
  readonly url: string;

  private constructor(plane: TestPlane, provider: IdentityProvider, upstream: RawUpstream, url: string) {
    this.plane = plane;
    this.provider = provider;
    this.upstream = upstream;
    this.url = url;
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
      ...CLIENT,
      ...provider.endpoints,
      tokenEndpointAuth: "clientSecretBasic",
      redirectURI: `${url}/callback`,
      scopes: ["email"],
      ...changes,
    };
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    await plane.configure([{ target, policies: { ...more, oidc } }]);
    return new Site(plane, provider, upstream, url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.plane[Symbol.asyncDispose]();
    await this.provider[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
  }
}

/** Fills in the provider's forms; the result is the redirect back to the gateway. */
async function enter(browser: Browser, form: Page, user = "jo"): Promise<Page> {
  const back = (next: URL) => next.pathname === "/callback";
  const consent = await browser.follow(await browser.submit(form, { login: user, password: "any" }), back);
  return consent.status === 200 ? browser.follow(await browser.submit(consent, {}), back) : consent;
}

async function logIn(browser: Browser, url: string, user?: string): Promise<Page> {
  return browser.follow(await enter(browser, await browser.open(url), user));
}

function sessionOf(browser: Browser, url: string): [string, string] {
  const found = [...browser.cookies(url)].find(([name]) => name.startsWith("tracegate_oidc_s_"));
  assert.ok(found !== undefined, "there is a session");
  return found;
}

test("a browser logs in, comes back to where it wanted to go, and stays logged in", async () => {
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
  const own = [...browser.cookies(site.url).keys()].filter((name) => name.startsWith("tracegate_oidc_"));
  assert.deepEqual(own, [sessionOf(browser, site.url)[0]]);
});

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { Provider } from "oidc-provider";
import type { Oidc } from "../../src/policies/oidc/schema.ts";
import type { Browser, Page } from "./browser.ts";

export const CLIENT = { clientId: "gateway", clientSecret: "a secret: nobody/else knows" } as const;

interface ProviderOptions {
  /** Metadata of the client. */
  readonly client?: object;
  /** Seconds that tokens live, by kind. */
  readonly ttl?: Readonly<Record<string, number>>;
  readonly provider?: object;
}

/** Options of a provider that issues refresh tokens, replaces them at each use, and ends sessions. */
export function withRefreshTokens(
  more: { readonly client?: object; readonly ttl?: Readonly<Record<string, number>> } = {},
) {
  const grants = { grant_types: ["authorization_code", "refresh_token"] };
  return {
    client: { ...grants, ...more.client },
    ttl: { IdToken: 60, AccessToken: 60, RefreshToken: 3600, ...more.ttl },
    provider: {
      issueRefreshToken: () => true,
      rotateRefreshToken: true,
      // Its own refuses loopback addresses, where the gateway is.
      fetch: (url: string, { dispatcher: _own, ...options }: RequestInit & { dispatcher?: unknown }) =>
        fetch(url, options),
      features: { revocation: { enabled: true }, backchannelLogout: { enabled: true } },
    },
  } satisfies ProviderOptions;
}

/** A real OpenID Connect provider with one client, where every user may log in with any password. */
export class IdentityProvider {
  readonly issuer: string;
  /** Public keys as JSON text. */
  readonly jwks: string;
  /** Requests to the token endpoint so far. */
  tokenCalls = 0;
  /** Why the token endpoint refused something. */
  readonly refused: string[] = [];
  /** A refresh token was used again after it was replaced, and its grant is revoked. */
  reused = false;
  /** While set, requests to the token endpoint get it as their status. */
  failing: number | undefined;
  readonly #server: Server;

  private constructor(issuer: string, jwks: string, server: Server) {
    this.issuer = issuer;
    this.jwks = jwks;
    this.#server = server;
  }

  /** `method`: how the client must identify itself at the token endpoint. `options`: more of provider and client. */
  static async start(
    redirectURI: string,
    method: "client_secret_basic" | "client_secret_post" = "client_secret_basic",
    options: ProviderOptions = {},
  ): Promise<IdentityProvider> {
    const { publicKey, privateKey } = await generateKeyPair("RS256", { extractable: true });
    const named = async (key: typeof publicKey): Promise<JWK> => ({
      ...(await exportJWK(key)),
      kid: "1",
      alg: "RS256",
    });
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const engine = new Provider(issuer, {
      clients: [
        {
          client_id: CLIENT.clientId,
          client_secret: CLIENT.clientSecret,
          redirect_uris: [redirectURI],
          token_endpoint_auth_method: method,
          ...options.client,
        },
      ],
      jwks: { keys: [{ ...(await named(privateKey)), use: "sig" }] },
      cookies: { keys: [randomBytes(32).toString("hex")] },
      claims: { openid: ["sub"], email: ["email"] },
      conformIdTokenClaims: false,
      findAccount: (_: unknown, id: string) => ({
        accountId: id,
        claims: () => ({ sub: id, email: `${id}@example.com` }),
      }),
      pkce: { required: () => true },
      // Otherwise the provider prints a warning that it is too short.
      ttl: { Interaction: 600, Session: 600, Grant: 600, IdToken: 600, AccessToken: 600, ...options.ttl },
      ...options.provider,
    });
    const handle = engine.callback();
    const provider = new IdentityProvider(issuer, JSON.stringify({ keys: [await named(publicKey)] }), server);
    engine.on("grant.error", (_context, { message }) => provider.refused.push(message));
    engine.on("grant.revoked", () => {
      provider.reused = true;
    });
    server.on("request", (request, response) => {
      if (request.url === "/token") {
        provider.tokenCalls++;
        if (provider.failing !== undefined) {
          response.writeHead(provider.failing).end();
          return;
        }
      }
      void handle(request, response);
    });
    return provider;
  }

  /** The fields of a policy. */
  get endpoints() {
    const { issuer, jwks } = this;
    return { issuer, jwks, authorizationEndpoint: `${issuer}/auth`, tokenEndpoint: `${issuer}/token` };
  }

  /** The policy of a gateway at this URL. */
  policyAt(url: string): Oidc {
    return {
      ...CLIENT,
      ...this.endpoints,
      tokenEndpointAuth: "clientSecretBasic",
      callbackNamesIssuer: false,
      redirectURI: `${url}/callback`,
      scopes: ["email"],
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** Fills in the provider's forms; the result is the redirect back to the gateway, to a path `/callback`. */
export async function enter(browser: Browser, form: Page, user = "jo"): Promise<Page> {
  const back = (next: URL) => next.pathname === "/callback";
  const consent = await browser.follow(await browser.submit(form, { login: user, password: "any" }), back);
  return consent.status === 200 ? browser.follow(await browser.submit(consent, {}), back) : consent;
}

/** Opens a URL of the gateway and logs in. */
export async function logIn(browser: Browser, url: string, user?: string): Promise<Page> {
  return browser.follow(await enter(browser, await browser.open(url), user));
}

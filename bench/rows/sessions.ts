import { randomBytes } from "node:crypto";
import { LoginFlow } from "../../src/policies/oidc/flow.ts";
import type { Oidc } from "../../src/policies/oidc/schema.ts";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { onOneCore, startTracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave } from "./compare.ts";

const KEY = randomBytes(32);
const OIDC = {
  issuer: "https://id.example",
  authorizationEndpoint: "https://id.example/auth",
  tokenEndpoint: "https://id.example/token",
  jwks: '{"keys":[]}',
  clientId: "gateway",
  clientSecret: "secret",
  redirectURI: "http://bench.example/callback",
  scopes: ["email"],
  accessTokenHeader: "x-access-token",
  session: { lifetime: "8h", idleTimeout: "30m" },
} as const;

/** CPU per request with the cookie of a session, which the policy opens and removes, against the same request without the policy. */
export const sessions: Row = {
  name: "sessions",
  title: "a session of oidc",
  async run(bench) {
    const origin = await startOrigin(bench);
    const backends = `    backends:\n    - host: 127.0.0.1:${origin.port}\n`;
    const route = (path: string, more: string): string =>
      `  - matches:\n    - path: { pathPrefix: /${path} }\n${more}${backends}`;
    const routes = route("plain", "") + route("session", `    policies: ${JSON.stringify({ oidc: OIDC })}\n`);
    const env = { OIDC_COOKIE_SECRET: KEY.toString("hex") };
    const own = await startTracegate(bench, { ...onOneCore(bench), routes, env });
    const headers = { cookie: `theme=dark; ${sessionCookies()}` };
    const load = (path: string) => ({ targets: [{ host: "bench.example", path: `/${path}`, headers }] });
    const samples = await interleave(bench, [
      { name: "plain", proxy: own, load: load("plain") },
      { name: "session", proxy: own, load: load("session") },
    ]);
    await Promise.all([own, origin].map(({ child }) => child.stop()));
    const [plain, session] = [cpuOf(samples, "plain"), cpuOf(samples, "session")];
    return {
      measures: [
        {
          measure: "CPU per request with a session of oidc",
          tracegate: `${number(median(session))} µs`,
          peers: `${number(median(plain))} µs without`,
          value: pairedRatio(session, plain),
          limits: { better: "less", must: 1.3, aim: 1.1 },
        },
      ],
      samples,
    };
  },
};

/** What a browser sends after a login. */
function sessionCookies(): string {
  const config: Oidc = {
    ...OIDC,
    tokenEndpointAuth: "clientSecretBasic",
    callbackNamesIssuer: false,
    // The gateway has them in milliseconds.
    session: { lifetime: 28_800_000, idleTimeout: 1_800_000 } as NonNullable<Oidc["session"]>,
  };
  const { sessions: all } = new LoginFlow(config, KEY, () => Promise.reject(new Error("no login is completed here")));
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: "zoe", email: "zoe@example.com", sid: "s", exp: now + 28_800 };
  const tokens = { id: { token: "id", claims }, access: "a".repeat(900), refresh: "r".repeat(200), expiresIn: 28_800 };
  return all
    .issue(all.begin(tokens), new Map())
    .map((cookie) => cookie.slice(0, cookie.indexOf(";")))
    .join("; ");
}

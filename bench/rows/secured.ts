import { createPublicKey, createSign, generateKeyPairSync } from "node:crypto";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Measure, Peer, Row } from "../lib/types.ts";
import type { Target } from "../lib/wrk.ts";
import { envoyWith, type } from "../peers/envoy.ts";
import { startOrigin } from "../peers/origin.ts";
import { base, onOneCore, startTracegate, tracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave, startAll, stopProxies } from "./compare.ts";

const ISSUER = "https://issuer.example";
const FAR = 4_102_444_800;

/** CPU per request where each is authenticated, authorized, counted and changed: the same work in tracegate and in Envoy. */
export const secured: Row = {
  name: "secured",
  title: "JWT, authorization, rate limit and header modifiers",
  async run(bench) {
    const origin = await startOrigin(bench);
    const { jwks, token } = makeToken();
    const options = { originPort: origin.port, cpus: bench.cores.proxy, accessLog: false };
    const routes = ownRoutes(origin.port, jwks);
    const own: Peer = {
      ...tracegate,
      start: (each) => startTracegate(each, { ...onOneCore(each), routes }),
    };
    const before: Peer = {
      ...base,
      start: async (each, main) => ({
        ...(await startTracegate(each, { ...onOneCore(each), routes, main })),
        name: "base",
      }),
    };
    const proxies = await startAll(bench, [own, before, envoyWith(envoyFilters(jwks))], options);
    const targets: Target[] = [
      { host: "bench.example", path: "/api/things", headers: { authorization: `Bearer ${token}` } },
    ];
    const samples = await interleave(
      bench,
      proxies.map((proxy) => ({ name: proxy.name, proxy, load: { targets } })),
    );
    await stopProxies([...proxies, origin]);
    const ours = cpuOf(samples, "tracegate");
    const against = (peer: string): Measure => {
      const theirs = cpuOf(samples, peer);
      return {
        measure: `CPU per request with JWT (RS256, cached), 3 rules, rate limit, header modifiers, against ${peer}`,
        tracegate: `${number(median(ours))} µs`,
        peers: theirs.length === 0 ? "" : `${number(median(theirs))} µs`,
        value: pairedRatio(ours, theirs),
        ...(peer === "envoy" && { limits: { better: "less", must: 0.8, aim: 0.5 } }),
      };
    };
    return { measures: [...(samples.base === undefined ? [] : [against("base")]), against("envoy")], samples };
  },
};

/** A key of its own and a token that it has signed. */
function makeToken(): { readonly jwks: string; readonly token: string } {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const jwk = createPublicKey(privateKey).export({ format: "jwk" });
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "RS256", kid: "bench" })}.${part({ iss: ISSUER, sub: "zoe", role: "admin", exp: FAR })}`;
  const signature = createSign("RSA-SHA256").update(signed).sign(privateKey, "base64url");
  return { jwks: JSON.stringify({ keys: [{ ...jwk, kid: "bench", alg: "RS256" }] }), token: `${signed}.${signature}` };
}

function ownRoutes(originPort: number, jwks: string): string {
  return `  - backends:
    - host: 127.0.0.1:${originPort}
    policies:
      jwtAuth:
        mode: strict
        issuer: ${ISSUER}
        jwks: '${jwks}'
      authorization:
        rules:
        - deny: request.path.startsWith("/internal")
        - require: jwt.sub != ""
        - allow: jwt.role == "admin" && request.method in ["GET", "POST"]
      localRateLimit:
      - maxTokens: 100000000
        tokensPerFill: 100000000
        fillInterval: 1s
      requestHeaderModifier:
        set:
          x-served-by: gateway
      responseHeaderModifier:
        set:
          x-frame-options: DENY
`;
}

function envoyFilters(jwks: string): object[] {
  const path = (prefix: string): object => ({ url_path: { path: { prefix } } });
  const claim = (name: string, exact: string): object => ({
    metadata: {
      filter: "envoy.filters.http.jwt_authn",
      path: [{ key: "claims" }, { key: name }],
      value: { string_match: { exact } },
    },
  });
  const method = (exact: string): object => ({ header: { name: ":method", string_match: { exact } } });
  const policy = (permissions: object[], principals: object[]): object => ({ permissions, principals });
  const rbac = (name: string, action: string, policies: object): object => ({
    name,
    typed_config: { "@type": type("filters.http.rbac.v3.RBAC"), rules: { action, policies } },
  });
  const any = { any: true };
  const bucket = { max_tokens: 100_000_000, tokens_per_fill: 100_000_000, fill_interval: "1s" };
  const always = { default_value: { numerator: 100, denominator: "HUNDRED" } };
  const mutation = (key: string, value: string): object => ({
    append: { header: { key, value }, append_action: "OVERWRITE_IF_EXISTS_OR_ADD" },
  });
  return [
    {
      name: "jwt",
      typed_config: {
        "@type": type("filters.http.jwt_authn.v3.JwtAuthentication"),
        providers: {
          bench: {
            issuer: ISSUER,
            local_jwks: { inline_string: jwks },
            payload_in_metadata: "claims",
            jwt_cache_config: { jwt_cache_size: 1000 },
          },
        },
        rules: [{ match: { prefix: "/" }, requires: { provider_name: "bench" } }],
      },
    },
    rbac("deny", "DENY", { internal: policy([path("/internal")], [any]) }),
    rbac("require", "ALLOW", { subject: policy([any], [claim("sub", "zoe")]) }),
    rbac("allow", "ALLOW", {
      admin: policy([{ or_rules: { rules: [method("GET"), method("POST")] } }], [claim("role", "admin")]),
    }),
    {
      name: "limit",
      typed_config: {
        "@type": type("filters.http.local_ratelimit.v3.LocalRateLimit"),
        stat_prefix: "limit",
        token_bucket: bucket,
        filter_enabled: always,
        filter_enforced: always,
      },
    },
    {
      name: "headers",
      typed_config: {
        "@type": type("filters.http.header_mutation.v3.HeaderMutation"),
        mutations: {
          request_mutations: [mutation("x-served-by", "gateway")],
          response_mutations: [mutation("x-frame-options", "DENY")],
        },
      },
    },
  ];
}

import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { onOneCore, startTracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave } from "./compare.ts";

/** What a policy without I/O and cryptography may cost. */
const LIMIT = { better: "less", must: 1.3, aim: 1.1 } as const;

const PLAIN = "plain";
/** YAML of `policies`, by name; each on a route of its own. */
const POLICIES: Readonly<Record<string, string>> = {
  authorization: '{ authorization: { rules: [{ deny: request.path == "/x" }, { allow: request.method == "GET" }] } }',
  apiKey: "{ apiKey: { mode: strict, keys: [{ key: bench-key-of-a-usual-length }] } }",
  satisfy:
    "{ satisfy: { any: [{ basicAuth: { htpasswd: 'a:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=' } }, { apiKey: { keys: [{ key: bench-key-of-a-usual-length }] } }] } }",
  cors: '{ cors: { allowOrigins: ["https://app.example"], allowMethods: [GET], allowHeaders: [x-a] } }',
  csrf: "{ csrf: { additionalOrigins: [] } }",
  localRateLimit: "{ localRateLimit: [{ maxTokens: 100000000, tokensPerFill: 100000000, fillInterval: 1s }] }",
  requestHeaderModifier: "{ requestHeaderModifier: { set: { x-a: b }, remove: [x-c] } }",
  responseHeaderModifier: "{ responseHeaderModifier: { set: { x-a: b }, remove: [server] } }",
  retry: "{ retry: { attempts: 2, codes: [503] } }",
  timeout: "{ timeout: { requestTimeout: 30s, backendRequestTimeout: 10s } }",
  transformations:
    "{ transformations: { request: { set: { x-path: request.path } }, response: { set: { x-a: \"'b'\" } } } }",
  urlRewrite: "{ urlRewrite: { path: { prefix: / } } }",
};

/** CPU per request of a route with one policy against the same route without it; and of a route without policies next to them. */
export const policies: Row = {
  name: "policies",
  title: "each policy alone",
  async run(bench) {
    const origin = await startOrigin(bench);
    const backends = `    backends:\n    - host: 127.0.0.1:${origin.port}\n`;
    const plain = `  - matches:\n    - path: { pathPrefix: /${PLAIN} }\n${backends}`;
    const routes = Object.entries(POLICIES).map(
      ([name, policy]) => `  - matches:\n    - path: { pathPrefix: /${name} }\n    policies: ${policy}\n${backends}`,
    );
    const own = { ...onOneCore(bench), routes: [plain, ...routes].join("") };
    const [all, alone] = [await startTracegate(bench, own), await startTracegate(bench, { ...own, routes: plain })];
    const headers = { authorization: "Bearer bench-key-of-a-usual-length", origin: "https://app.example" };
    const load = (path: string) => ({ targets: [{ host: "bench.example", path: `/${path}`, headers }] });
    const samples = await interleave(bench, [
      { name: "alone", proxy: alone, load: load(PLAIN) },
      { name: PLAIN, proxy: all, load: load(PLAIN) },
      ...Object.keys(POLICIES).map((name) => ({ name, proxy: all, load: load(name) })),
    ]);
    await Promise.all([all, alone, origin].map(({ child }) => child.stop()));
    const base = cpuOf(samples, PLAIN);
    const against = (name: string, measure: string, other: readonly number[]): Measure => ({
      measure,
      tracegate: `${number(median(cpuOf(samples, name)))} µs`,
      peers: `${number(median(other))} µs without`,
      value: pairedRatio(cpuOf(samples, name), other),
      ...(name !== PLAIN && { limits: LIMIT }),
    });
    return {
      measures: [
        against(PLAIN, "a route beside others with policies", cpuOf(samples, "alone")),
        ...Object.keys(POLICIES).map((name) => against(name, `${name} alone`, base)),
      ],
      samples,
    };
  },
};

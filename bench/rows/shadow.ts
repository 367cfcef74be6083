import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { onOneCore, startTracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave } from "./compare.ts";

const KEY = "bench-key-of-a-usual-length";
/** YAML of a policy that allows every request, by its kind; `mark` puts it in shadow, `port` is that of a service that responds with 200. */
const POLICIES: Readonly<Record<string, (mark: string, port: number) => string>> = {
  authorization: (mark) =>
    `{ authorization: { ${mark} rules: [{ deny: request.path == "/x" }, { allow: request.method == "GET" }] } }`,
  apiKey: (mark) => `{ apiKey: { ${mark} mode: strict, keys: [{ key: ${KEY} }] } }`,
  localRateLimit: (mark) =>
    `{ localRateLimit: [{ ${mark} maxTokens: 100000000, tokensPerFill: 100000000, fillInterval: 1s }] }`,
  extAuthz: (mark, port) => `{ extAuthz: { ${mark} host: "127.0.0.1:${port}", protocol: { http: {} } } }`,
};
const MARKS = { none: undefined, enforced: "", shadow: "shadow: true," } as const;

/** CPU per request of a policy in shadow against the same policy enforced, and against none. */
export const shadow: Row = {
  name: "shadow",
  title: "policies in shadow",
  async run(bench) {
    const origin = await startOrigin(bench);
    const ways = Object.entries(MARKS);
    const routes = Object.entries(POLICIES).flatMap(([kind, policy]) =>
      ways.map(
        ([way, mark]) =>
          `  - matches:\n    - path: { pathPrefix: /${kind}/${way} }\n${mark === undefined ? "" : `    policies: ${policy(mark, origin.port)}\n`}    backends:\n    - host: 127.0.0.1:${origin.port}\n`,
      ),
    );
    const proxy = await startTracegate(bench, { ...onOneCore(bench), routes: routes.join("") });
    const headers = { authorization: `Bearer ${KEY}` };
    const samples = await interleave(
      bench,
      Object.keys(POLICIES).flatMap((kind) =>
        ways.map(([way]) => ({
          name: `${kind} ${way}`,
          proxy,
          load: { targets: [{ host: "bench.example", path: `/${kind}/${way}`, headers }] },
        })),
      ),
    );
    await Promise.all([proxy, origin].map(({ child }) => child.stop()));
    const measures = Object.keys(POLICIES).flatMap((kind) => {
      const own = cpuOf(samples, `${kind} shadow`);
      return (["enforced", "none"] as const).map((way): Measure => {
        const other = cpuOf(samples, `${kind} ${way}`);
        return {
          measure: `${kind} in shadow, against ${way}`,
          tracegate: `${number(median(own))} µs`,
          peers: `${number(median(other))} µs`,
          value: pairedRatio(own, other),
          ...(way === "enforced" && { limits: { better: "less", must: 1.2, aim: 1.1 } }),
        };
      });
    });
    return { measures, samples };
  },
};

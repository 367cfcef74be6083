import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Row } from "../lib/types.ts";
import type { Target } from "../lib/wrk.ts";
import { startOrigin } from "../peers/origin.ts";
import { oneRoute, onOneCore, startTracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave, stopProxies } from "./compare.ts";

export const HOSTS = 1000;
const ROUTES_PER_HOST = 10;

/** The same 1,000 requests, spread over hosts and paths, through 10,000 routes and through one. */
export const routes: Row = {
  name: "routes",
  title: "10,000 routes on 1,000 hosts against one route",
  async run(bench) {
    const origin = await startOrigin(bench);
    const base = onOneCore(bench);
    const one = await startTracegate(bench, { ...base, routes: oneRoute(origin.port) });
    const many = await startTracegate(bench, { ...base, routes: manyRoutes(origin.port) });
    const load = { targets: spreadTargets() };
    const samples = await interleave(bench, [
      { name: "10,000 routes", proxy: many, load },
      { name: "one route", proxy: one, load },
    ]);
    await stopProxies([one, many, origin]);
    const [ofMany, ofOne] = [cpuOf(samples, "10,000 routes"), cpuOf(samples, "one route")];
    const measure = {
      measure: "CPU per request with 10,000 routes on 1,000 hosts",
      tracegate: `${number(median(ofMany))} µs`,
      peers: `one route ${number(median(ofOne))} µs`,
      value: pairedRatio(ofMany, ofOne),
      limits: { better: "less", must: 1.15, aim: 1.05 },
    } as const;
    return { measures: [measure], samples };
  },
};

export function hostName(index: number): string {
  return `host-${index}.bench.test`;
}

/** The YAML of 10,000 routes, or another multiple of ten: each of 1,000 hosts has `/` and nine longer prefixes. */
export function manyRoutes(originPort: number, count = HOSTS * ROUTES_PER_HOST): string {
  const list: string[] = [];
  for (let host = 0; host < count / ROUTES_PER_HOST; host++) {
    for (let path = 0; path < ROUTES_PER_HOST; path++) list.push(route(host, path, originPort));
  }
  return list.join("");
}

function route(host: number, path: number, originPort: number): string {
  return `  - name: route-${host}-${path}
    hostnames: [${hostName(host)}]
    matches:
    - path: {pathPrefix: ${prefix(path)}}
    backends:
    - host: 127.0.0.1:${originPort}
`;
}

function prefix(path: number): string {
  return path === 0 ? "/" : `/service-${path}/v1`;
}

/** One request for each host; the steps are coprime to the counts, so that neighbours share nothing. */
function spreadTargets(): Target[] {
  return Array.from({ length: HOSTS }, (_, index) => ({
    host: hostName((index * 617) % HOSTS),
    path: `${prefix((index * 7) % ROUTES_PER_HOST)}/items/${index}`.replace("//", "/"),
  }));
}

/**
 * Time to choose a route, alone and among 10,000, in one process by turns.
 * Run: node bench/micro/match.ts
 *
 * Node 24.21, µs per choice, best of 9 rounds: 1 route 0.06; 10,000 routes on 1,000 hosts 0.18; the same with paths of 22
 * segments 0.22; 10,000 routes without host 0.17; the same on a wildcard 0.21; 10 regexes 0.41 (one of them is tried, the
 * others differ in the text they begin with). Building the 10,000 takes 6.4 ms, a slice of 200 at most 0.2 ms.
 */
import type { HttpRequest } from "../../src/http/message/message.ts";
import type { PathMatch, Route } from "../../src/ir/ir.ts";
import { type Router, RouterBuilder } from "../../src/proxy/match/router.ts";

const ITERATIONS = 50_000;
const ROUNDS = 9;

interface Keyed {
  readonly key: string;
}

function route(key: string, hostnames: readonly string[], path: PathMatch): Route {
  const matches = [{ path, headers: [], query: [] }];
  return { key, name: key, namespace: "default", hostnames, matches, policies: {}, backends: [] };
}

function router(routes: readonly Route[]): Router<Keyed> {
  const builder = new RouterBuilder<Keyed>();
  for (const each of routes) builder.add(each, { key: each.key });
  return builder.finish();
}

function prefix(value: string): PathMatch {
  return { type: "pathPrefix", value };
}

/** 10 prefixes on each of 1,000 hosts. */
const many = Array.from({ length: 10_000 }, (_, i) =>
  route(`route${i}`, [`host${i % 1000}.example.com`], prefix(`/service${Math.floor(i / 1000)}`)),
);
const oneHost = Array.from({ length: 10_000 }, (_, i) => route(`route${i}`, [], prefix(`/team${i % 100}/service${i}`)));
const regexes = Array.from({ length: 10 }, (_, i) =>
  route(`route${i}`, [], { type: "regex", value: `/service${i}/v[0-9]+/.*` }),
);

/**
 * Requests to as many new strings, cut from a head as the parser cuts them: a map look-up must hash each. They have 64
 * different texts.
 */
function freshRequests(path: (i: number) => string): { request: HttpRequest; host: string }[] {
  return Array.from({ length: ITERATIONS }, (_, index) => {
    const i = index & 63;
    const head = Buffer.from(`GET ${path(i)} HTTP/1.1\r\nhost: ${hostOf(i)}\r\n`).toString("latin1");
    const pathEnd = head.indexOf(" ", 4);
    const authority = head.slice(head.indexOf("host: ") + 6, -2);
    return {
      host: authority,
      request: {
        method: "GET",
        scheme: "http",
        authority,
        path: head.slice(4, pathEnd),
        search: "",
        version: "HTTP/1.1",
        headers: ["user-agent", "bench", "accept", "*/*"],
      },
    };
  });
}

const hostOf = (i: number) => `host${(i * 37) % 1000}.example.com`;
const service = (i: number) => `/service${i % 10}/v1/users/${i}`;
const team = (i: number) => `/team${i % 100}/service${i}/v1/users`;
const deep = (i: number) => `/service${i % 10}/${"segment/".repeat(20)}${i}`;

interface Case {
  readonly router: Router<Keyed>;
  readonly path: (i: number) => string;
}
const wildcards = oneHost.map((each) => ({ ...each, hostnames: ["*.example.com"] }));
const cases: Record<string, Case> = {
  "1 route": { router: router([route("only", [], prefix("/"))]), path: service },
  "10,000 routes on 1,000 hosts": { router: router(many), path: service },
  "the same, paths of 22 segments": { router: router(many), path: deep },
  "10,000 routes without host": { router: router(oneHost), path: team },
  "the same on a wildcard": { router: router(wildcards), path: team },
  "10 regexes": { router: router(regexes), path: service },
};

function nanoseconds({ router, path }: Case): number {
  const requests = freshRequests(path);
  let found = 0;
  const start = process.hrtime.bigint();
  for (const { request, host } of requests) if (router.select(request, host) !== undefined) found++;
  const time = Number(process.hrtime.bigint() - start) / ITERATIONS;
  if (found !== ITERATIONS) throw new Error(`only ${found} of ${ITERATIONS} requests found a route`);
  return time;
}

const best = new Map<string, number>();
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, each] of Object.entries(cases)) {
    best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, nanoseconds(each)));
  }
}
for (const [name, time] of best) console.log(`${name}: ${(time / 1000).toFixed(3)} µs`);

/** Milliseconds to build the router of 10,000 routes, and of them those of the slowest slice. */
function building(): { total: number; slowest: number } {
  const builder = new RouterBuilder<Keyed>();
  let total = 0;
  let slowest = 0;
  for (let i = 0; i < many.length; i += 200) {
    const start = performance.now();
    for (const each of many.slice(i, i + 200)) builder.add(each, { key: each.key });
    const time = performance.now() - start;
    total += time;
    slowest = Math.max(slowest, time);
  }
  builder.finish();
  return { total, slowest };
}

const builds = Array.from({ length: ROUNDS }, building).sort((a, b) => a.total - b.total);
const build = builds[0] ?? { total: Number.NaN, slowest: Number.NaN };
console.log(
  `building 10,000 routes: ${build.total.toFixed(1)} ms, slowest slice of 200 routes: ${build.slowest.toFixed(2)} ms`,
);

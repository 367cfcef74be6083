import { isIP } from "node:net";
import type { Converted, ConvertedListener, ConvertedPort, ConvertedRoute, Json } from "../converted.ts";
import { Findings } from "../findings.ts";
import { listenerName, Names, nameOf } from "../names.ts";
import { type PathShape, pathsInOrder } from "../paths.ts";
import { type Case, Cases } from "./cases.ts";
import { type Directive, parseCaddyfile } from "./parse.ts";
import { type Address, addressesOf, boundTo, hasHost, type Options, readOptions, tlsOf } from "./sites.ts";

/**
 * Converts a Caddyfile. `path`: of the file, whose folder imports are read from; undefined: none are.
 * @throws SyntaxProblem
 */
export function convertCaddy(name: string, text: string, path: string | undefined): Converted {
  const findings = new Findings();
  const { options, sites } = parseCaddyfile(name, text, path, findings);
  const conversion = new Conversion(readOptions(options, findings), findings);
  conversion.addSites(sites);
  if (sites.length === 0)
    findings.find(
      "error",
      { file: name, line: 1, column: 1 },
      "there is no site to convert",
      "pass the whole Caddyfile",
    );
  return conversion.result();
}

class Conversion {
  readonly #options: Options;
  readonly #findings: Findings;
  readonly #ports = new Map<number, ConvertedPort>();
  readonly #routes: ConvertedRoute[] = [];
  readonly #names = new Names();
  readonly #backends: Json[] = [];
  /** What sites listen on, by port. */
  readonly #bound = new Map<number, Set<string>>();
  /** Sites whose HTTP requests are redirected, by host. */
  readonly #redirected = new Map<string, Directive>();

  constructor(options: Options, findings: Findings) {
    this.#options = options;
    this.#findings = findings;
  }

  result(): Converted {
    this.#addRedirects();
    const { trustedProxies } = this.#options;
    return {
      ports: [...this.#ports.values()],
      routes: this.#routes,
      backends: this.#backends,
      frontendPolicies: trustedProxies.length > 0 ? { http: { forwarded: { trustedProxies } } } : {},
      findings: this.#findings.sorted(),
    };
  }

  addSites(sites: readonly Directive[]): void {
    const all = sites.map((site) => ({ site, ...addressesOf(site, this.#options, this.#findings) }));
    const unserved = all.flatMap(({ site, unserved }) => unserved.map((host) => ({ site, host })));
    for (const { site, addresses } of all)
      for (const { port } of addresses)
        this.#bound.set(port, (this.#bound.get(port) ?? new Set()).add(String(boundTo(site, this.#options))));
    for (const { site, addresses } of all) {
      const lost = unserved.find((each) => addresses.some(({ host }) => hasHost(host, each.host)));
      this.#addSite(
        site,
        addresses,
        [lost?.site, this.#options.order].filter((each) => each !== undefined),
      );
    }
  }

  /** `lost`: restrictions that are not converted. */
  #addSite(site: Directive, addresses: readonly Address[], lost: Directive[]): void {
    const bind = boundTo(site, this.#options);
    const others = addresses.some(({ port }) => (this.#bound.get(port)?.size ?? 0) > 1);
    if (bind !== undefined && (others || bind.some((each) => isIP(each) === 0))) {
      const at = site.block?.find(({ name }) => name === "bind") ?? site;
      this.#findings.find("error", at, "other sites listen on the port too", "give the site a port of its own");
      lost.push(at);
    }
    const open = addresses.flatMap((address) => {
      const name = this.#addListener(site, address, lost);
      return name === undefined ? [] : { name, host: address.host };
    });
    if (open.length === 0) return;
    for (const { isRedirected, host } of addresses) if (isRedirected) this.#redirected.set(host, site);
    const label = open[0]?.host === "*" ? "any" : (open[0]?.host ?? "");
    const cases = new Cases(label, this.#backends, this.#options.clients, this.#findings);
    const found = cases.of(site.block ?? [], lost[0]);
    this.#addRoutes(
      label,
      open.map(({ name }) => name),
      found,
    );
  }

  /** Its name; undefined: another site has the address. */
  #addListener(site: Directive, { host, port, isTls }: Address, lost: Directive[]): string | undefined {
    let bound = this.#ports.get(port);
    if (bound === undefined) {
      const { httpPort, httpsPort } = this.#options;
      const name = port === httpPort ? "http" : port === httpsPort ? "https" : `port-${port}`;
      const addresses = this.#bound.get(port)?.size === 1 ? boundTo(site, this.#options) : undefined;
      bound = { name, port, ...(addresses && { addresses }), listeners: [] };
      this.#ports.set(port, bound);
    }
    if (bound.listeners.some(({ hostname }) => hostname === host)) {
      this.#findings.find("error", site, `${host}:${port} is served by an earlier site`, "remove one of them");
      return undefined;
    }
    const tls = isTls ? tlsOf(site, host, this.#options, this.#findings) : undefined;
    if (tls?.lost !== undefined) lost.push(tls.lost);
    const name = listenerName(host, bound.listeners);
    const listener: ConvertedListener = { name, at: site, hostname: host, ...(tls && { tls: tls.value }) };
    bound.listeners.push(listener);
    return `${bound.name}/${name}`;
  }

  /** Automatic HTTPS: requests over HTTP are redirected, where no site has the host there. */
  #addRedirects(): void {
    const { httpPort } = this.#options;
    if (!this.#bound.has(httpPort))
      this.#bound.set(
        httpPort,
        new Set([...this.#redirected.values()].map((each) => String(boundTo(each, this.#options)))),
      );
    for (const [host, site] of this.#redirected) {
      const known = this.#ports.get(httpPort)?.listeners.some(({ hostname }) => hostname === host);
      if (known) continue;
      const lost: Directive[] = [];
      const listener = this.#addListener(site, { host, port: httpPort, isTls: false, isRedirected: false }, lost);
      if (listener === undefined) continue;
      const policies = { requestRedirect: { scheme: "https", status: 308 } };
      this.#push(`${nameOf(host)}-https`, site, { listeners: [listener], matches: [], policies, backends: [] });
    }
  }

  #addRoutes(label: string, listeners: readonly string[], cases: readonly Case[]): void {
    const shapes = cases.map((each) => shapesOf(each));
    const weights = cases.map(({ condition }) => weightOf(condition));
    const paths = pathsInOrder(shapes.flatMap((own, i) => own.map((shape) => ({ ...shape, weight: weights[i] ?? 0 }))));
    let next = 0;
    for (const [i, { at, condition, policies, backends }] of cases.entries()) {
      const ownPaths = paths.slice(next, next + (shapes[i]?.length ?? 0));
      next += ownPaths.length;
      const { methods = [undefined], headers, query, hosts } = condition;
      const matches = ownPaths.flatMap((path) =>
        methods.map((method) => ({
          ...(JSON.stringify(path) !== '{"pathPrefix":"/"}' && { path }),
          ...(method !== undefined && { method }),
          ...(headers && { headers }),
          ...(query && { query }),
        })),
      );
      const isAll = matches.length === 1 && Object.keys(matches[0] ?? {}).length === 0;
      const add = (hostnames: readonly string[] | undefined): void =>
        this.#push(`${nameOf(label)}-${nameOf([at.name, ...at.args.slice(0, 1)].join("-"))}`, at, {
          listeners,
          ...(hostnames && { hostnames }),
          matches: isAll ? [] : matches,
          policies,
          backends,
        });
      add(hosts);
      // A route with a longer host name is tried first, so routes before it need the name too.
      const later = new Set(cases.slice(i + 1).flatMap((each) => each.condition.hosts ?? []));
      const own = [...later].filter(
        (host) => hosts?.includes(host) !== true && (hosts ?? ["*"]).some((each) => hasHost(each, host)),
      );
      if (own.length > 0) add(own);
    }
  }

  #push(
    name: string,
    at: Directive,
    route: Pick<ConvertedRoute, "listeners" | "hostnames" | "matches" | "policies" | "backends">,
  ): void {
    const from = `${at.file}:${at.line}: ${[at.name, ...at.args].join(" ")}`;
    this.#routes.push({ name: this.#names.unique(name), from, at, ...route });
  }
}

/** The paths of a case. Caddy compares them without case; so do routes that keep requests out. */
function shapesOf({ condition, isRestricted }: Case): readonly PathShape[] {
  const paths = condition.paths ?? [{ type: "segments", path: "/" } as const];
  if (!isRestricted) return paths;
  return paths.map((each): PathShape => (each.path === "/" && each.type === "segments" ? each : caseless(each)));
}

function caseless({ type, path }: PathShape): PathShape {
  return type === "regex" ? { type, path: `(?i)${path.replace(/^\(\?i\)/, "")}` } : { type, path, isCaseless: true };
}

/** Of routes with one path, those with more conditions are tried first. */
function weightOf({ methods, headers = [], query = [] }: Case["condition"]): number {
  return (methods === undefined ? 0 : 10_000) + headers.length * 100 + query.length;
}

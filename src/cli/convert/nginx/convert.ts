import { isIP } from "node:net";
import { dirname } from "node:path";
import {
  type Converted,
  type ConvertedListener,
  type ConvertedPort,
  type ConvertedRoute,
  type Json,
  NOT_CONVERTED,
} from "../converted.ts";
import { Findings } from "../findings.ts";
import { merged } from "../merge.ts";
import { listenerName, Names, nameOf } from "../names.ts";
import { beginningOf } from "../paths.ts";
import { Backends } from "./backends.ts";
import { FILES_REMEDY, mayRestrict } from "./directives.ts";
import { allLocations, inherited, type Location, type LocationMatch, matchesOf, whyWider } from "./locations.ts";
import { type Directive, parseNginx } from "./parse.ts";
import { access, responses } from "./policies.ts";
import { Reading } from "./reading.ts";
import { calling, pathOf, requestOf } from "./request.ts";
import { redirectedBy, returned as returnedBy } from "./responses.ts";
import { all, nearest, one, passing, type Scope, valuesOf } from "./scope.ts";
import {
  addressesOf,
  defaultOf,
  hostnames,
  isPattern,
  type Listen,
  readServer,
  type Server,
  tlsOf,
} from "./servers.ts";

/**
 * Converts the `http` part of a configuration. `path`: of the file, whose folder includes are read from; undefined: none are.
 * @throws SyntaxProblem
 */
export function convertNginx(name: string, text: string, path: string | undefined): Converted {
  const findings = new Findings();
  const directives = parseNginx(name, text, path, findings);
  const http = directives.find((each) => each.name === "http");
  // A file of conf.d is what stands in `http`.
  const reading = new Reading(http?.block ?? directives, findings, path === undefined ? undefined : dirname(path));
  if (http !== undefined) for (const each of directives) if (each !== http) reading.report(each);
  return { ...new Conversion(reading).result(), findings: findings.sorted() };
}

interface OpenListener {
  readonly host: string;
  /** `<port>/<listener>` */
  readonly name: string;
}

class Conversion {
  readonly #reading: Reading;
  readonly #backends: Backends;
  readonly #ports = new Map<number, ConvertedPort>();
  readonly #routes: ConvertedRoute[] = [];
  readonly #names = new Names();

  constructor(reading: Reading) {
    this.#reading = reading;
    this.#backends = new Backends(reading);
  }

  result(): Omit<Converted, "findings"> {
    const { http } = this.#reading;
    const servers = valuesOf(http, "server").map((each) => readServer(this.#reading, each));
    const [first] = http;
    if (servers.length === 0 && first !== undefined)
      this.#reading.find("error", first, "there is no server to convert", "pass the file with the http block");
    this.#reading.reportUnread(http);
    for (const server of servers) this.#convertServer(server, servers);
    return {
      ports: [...this.#ports.values()],
      routes: this.#routes,
      backends: this.#backends.named,
      frontendPolicies: appendsForwardedFor(http) ? { http: { forwarded: { mode: "append" } } } : {},
    };
  }

  #convertServer(server: Server, all: readonly Server[]): void {
    const { block, directive } = server;
    this.#reading.reportUnread(block);
    const seen = new Set<number>();
    // Both addresses of IPv4 and IPv6 are one port here.
    const listens = server.listens.filter(({ port }) => !seen.has(port) && seen.add(port));
    const hosts = hostnames(this.#reading, server);
    const lost: Directive[] = [];
    for (const { directive: at, address, port } of server.listens) {
      const addresses = addressesOf(port, all);
      const own = server.listens.flatMap((each) => (each.port === port ? [each.address] : []));
      const others = addresses?.filter((each) => !own.includes(each));
      if (address !== undefined && others?.length !== 0) {
        this.#reading.find(
          "error",
          at,
          `listens on ${others?.join(", ") ?? "every address"}, not only on ${address}: other servers do on this port`,
          "give it another port",
        );
        lost.push(at);
      }
    }
    // Hosts that belong to another server must not get what the default server has for them.
    const unnamed = all
      .filter((each) => each !== server && each.listens.some(({ port }) => seen.has(port)))
      .flatMap(({ block, names }) => (names.some(isPattern) ? valuesOf(block, "server_name") : []))[0];
    for (const tls of [false, true]) {
      const listeners = listens
        .filter((each) => each.tls === tls)
        .flatMap((listen) => {
          const isDefault = defaultOf(listen.port, all) === server;
          return [...hosts, ...(isDefault ? ["*"] : [])].map((host) => ({
            host,
            name: this.#addListener(listen, host, server, addressesOf(listen.port, all)),
          }));
        })
        .filter((each): each is OpenListener => each.name !== undefined);
      const foreign = listeners.filter(({ host }) => host === "*" && unnamed !== undefined);
      if (unnamed !== undefined && foreign.length > 0) {
        this.#reading.find(
          "error",
          unnamed,
          "hosts that only this name or no other name matches get 501",
          "name these hosts, then remove the route with directResponse",
        );
        const names = foreign.map(({ name }) => name);
        this.#addRoute(directive, names, [], { directResponse: NOT_CONVERTED }, []);
      }
      const own = listeners.filter((each) => !foreign.includes(each));
      if (own.length > 0) this.#convertRoutes(server, tls, own, lost);
    }
    if (listens.length === 0) this.#reading.find("error", directive, "the server listens nowhere");
  }

  /** Its name; undefined: an earlier server has the host, and nginx ignores this one. */
  #addListener(
    { port, tls }: Listen,
    hostname: string,
    server: Server,
    addresses: readonly string[] | undefined,
  ): string | undefined {
    let bound = this.#ports.get(port);
    if (bound === undefined) {
      const name = port === 80 ? "http" : port === 443 ? "https" : `port-${port}`;
      bound = { name, port, ...(addresses && { addresses }), listeners: [] };
      this.#ports.set(port, bound);
    }
    const name = listenerName(hostname, bound.listeners);
    const known = bound.listeners.find((each) => each.hostname === hostname);
    if (known !== undefined) {
      this.#reading.find(
        "warning",
        server.directive,
        `${hostname}:${port} is served by an earlier server`,
        "remove one of them",
      );
      return undefined;
    }
    const listener: ConvertedListener = {
      name,
      at: server.directive,
      hostname,
      ...(tls && { tls: tlsOf(this.#reading, server) }),
    };
    bound.listeners.push(listener);
    return `${bound.name}/${name}`;
  }

  /** `restrictions`: those of the server that are not converted. */
  #convertRoutes(
    server: Server,
    tls: boolean,
    listeners: readonly OpenListener[],
    restrictions: readonly Directive[],
  ): void {
    const { block } = server;
    let open = [...listeners];
    const add = (
      directive: Directive,
      names: readonly string[],
      matches: readonly Json[],
      policies: Json,
      backends: readonly Json[] = [],
    ): void => this.#addRoute(directive, names, matches, policies, backends);
    const lost = [...restrictions];
    for (const each of valuesOf(block, "if")) {
      const converted = returningIf(each);
      const met = open.filter(({ host }) =>
        converted?.host === undefined ? converted !== undefined && !tls : host === converted.host,
      );
      const isOfOthers =
        met.length === 0 && converted?.host !== undefined && open.some(({ host }) => host.includes("*"));
      if (converted === undefined || isOfOthers) {
        this.#reading.find(
          "error",
          each,
          `if ${each.args.join(" ")} is left out`,
          "write a route with these conditions in matches",
        );
        if (refuses(each)) lost.push(each);
        continue;
      }
      const scope = [each.block ?? [], block, this.#reading.http];
      if (met.length > 0)
        add(
          each,
          met.map(({ name }) => name),
          [],
          returnedBy(this.#reading, converted.returned, scope, server),
        );
      open = open.filter((listener) => !met.includes(listener));
    }
    const names = open.map(({ name }) => name);
    if (names.length === 0) return;
    const returned = valuesOf(block, "return")[0];
    const rewrites = valuesOf(block, "rewrite")
      .filter((each) => returned === undefined || block.indexOf(each) < block.indexOf(returned))
      .flatMap((directive): Location | [] => {
        const [path = "", , flag] = directive.args;
        if (redirectedBy(this.#reading, directive, server) !== undefined)
          return this.#reading.isUsable(path, directive) ? { directive, kind: "rewrite", path } : [];
        this.#reading.find(
          "error",
          directive,
          `rewrite for all locations${flag === undefined ? "" : ` (${flag})`} is left out`,
          "rewrite in each location",
        );
        return [];
      });
    if (returned !== undefined) {
      for (const { location, match } of matchesOf(rewrites, () => false))
        this.#convertLocation(location, [{ location, match, part: "whole" }], server, names, lost);
      const scope = [block, this.#reading.http];
      const [refusing] = lost;
      if (refusing !== undefined) this.#close(returned, refusing, names, []);
      else
        add(returned, names, [], {
          ...access(this.#reading, scope),
          ...returnedBy(this.#reading, returned, scope, server),
        });
      return;
    }
    const written = allLocations(block);
    const locations = [...rewrites, ...written.flatMap((each) => this.#usable(each, written))];
    const matches = matchesOf(locations, ({ directive: { block = [] } }) =>
      block.some(({ name }) => name === "proxy_pass" || name === "grpc_pass"),
    );
    for (const [location, own] of Map.groupBy(matches, (each) => each.location))
      this.#convertLocation(location, own, server, names, lost);
    if (!locations.some(({ kind, path }) => kind === "prefix" && path === "/") && one([block], "root") !== undefined)
      this.#reading.find("error", one([block], "root") ?? server.directive, "files are not served", FILES_REMEDY);
  }

  /** A location that no route can stand for becomes one that matches more, whose requests get 501. */
  #usable(location: Location, all: readonly Location[]): Location | [] {
    const { kind, path, directive } = location;
    const why = whyWider(location, all);
    if (why !== undefined)
      this.#reading.find(
        "error",
        directive,
        `requests of location ${directive.args.join(" ")} get 501: it ${why}, which a route cannot express`,
        "write its routes by hand",
      );
    if (why !== undefined && (kind !== "regex" || this.#reading.isUsable(path, directive)))
      return { ...location, isWider: true };
    if (kind !== "regex") return path.startsWith("/") ? location : [];
    const wider = beginningOf(path);
    return this.#reading.isUsable(path, directive, `is not converted: paths that match ${wider} get 501`)
      ? location
      : { ...location, path: wider, isWider: true };
  }

  /** Requests get 501 because what restricts them is not converted. */
  #close(at: Directive, lost: Directive, listeners: readonly string[], matches: readonly Json[]): void {
    this.#reading.find(
      "error",
      at,
      `requests of ${textOf(at)} get 501: ${textOf(lost)} may restrict them, and is not converted`,
      "add the policy that takes its place, then remove directResponse and name the backend",
    );
    this.#addRoute(at, listeners, matches, { directResponse: NOT_CONVERTED }, []);
  }

  #convertLocation(
    location: Location,
    matches: readonly LocationMatch[],
    server: Server,
    listeners: readonly string[],
    /** Restrictions of the server that are not converted. */
    restrictions: readonly Directive[],
  ): void {
    const { directive, kind, path, isWider } = location;
    const scope = passing([directive.block ?? [], server.block, this.#reading.http]);
    const [block = []] = scope;
    const every = matches.map(({ match }) => match);
    const respond = (policies: Json): void => this.#addRoute(directive, listeners, every, policies, []);
    if (kind === "rewrite") {
      respond(redirectedBy(this.#reading, directive, server) ?? {});
      return;
    }
    if (isWider) {
      respond({ directResponse: NOT_CONVERTED });
      return;
    }
    this.#reading.reportUnread(block);
    for (const each of valuesOf(block, "if"))
      this.#reading.find(
        "error",
        each,
        `if ${each.args.join(" ")} is left out`,
        "write a route with these conditions in matches",
      );
    const common = { ...access(this.#reading, scope), ...responses(this.#reading, scope) };
    const group = (part: LocationMatch["part"]): readonly Json[] =>
      matches.filter((each) => each.part === part).map((each) => each.match);
    const lost = lostRestriction(scope, [...valuesOf(block, "if").filter(refuses), ...restrictions]);
    if (lost !== undefined) {
      this.#close(directive, lost, listeners, every);
      return;
    }
    const returned = valuesOf(block, "return")[0];
    if (returned !== undefined) {
      for (const each of valuesOf(block, "rewrite"))
        if (block.indexOf(each) < block.indexOf(returned))
          this.#reading.find("error", each, "rewrite before return is left out", "give its paths a location");
      const policies = {
        ...common,
        ...returnedBy(this.#reading, returned, scope, server, kind === "regex" ? path : undefined),
      };
      respond(policies);
      return;
    }
    const passed = valuesOf(block, "proxy_pass")[0];
    const rewritten = valuesOf(block, "rewrite").flatMap((each) => {
      const policies = redirectedBy(this.#reading, each, server);
      if (policies === undefined) return [];
      if (passed !== undefined)
        this.#reading.find(
          "warning",
          each,
          "redirects every path of the location",
          "give paths that are not meant a route of their own",
        );
      return [policies];
    })[0];
    if (rewritten !== undefined) {
      respond({ ...common, ...rewritten });
      return;
    }
    const again = valuesOf(block, "rewrite").find(({ args }) => args[2] !== "break");
    const others = allLocations(server.block).filter((each) => each.kind !== kind || each.path !== path);
    if (again !== undefined && others.some(({ directive: { block = [] } }) => keepsOut(block))) {
      this.#close(directive, again, listeners, every);
      return;
    }
    const fallback = passed === undefined ? this.#fallbackOf(block, server) : undefined;
    if (fallback !== undefined) {
      const restricts = ({ name }: Directive): boolean => ["allow", "deny", "auth_basic"].includes(name);
      const own = block.find(restricts);
      const choice = one([block, fallback], "satisfy");
      // nginx applies both, one after the other, each in its own way.
      if (choice !== undefined) this.#close(directive, choice, listeners, every);
      else if (own !== undefined && fallback.some(restricts)) this.#close(directive, own, listeners, every);
      else {
        const both = [...valuesOf(block, "rewrite"), ...fallback, ...inherited(fallback, block)];
        const without = both.filter(({ name }) => name !== "try_files");
        const as = { ...location, directive: { ...directive, block: without } };
        const own = matches.map((each) => ({ ...each, location: as }));
        this.#convertLocation(as, own, server, listeners, restrictions);
      }
      return;
    }
    if (passed === undefined) {
      this.#reading.find(
        "error",
        directive,
        `location ${directive.args.join(" ")} passes requests to no server: they get 501`,
        FILES_REMEDY,
      );
      respond({ directResponse: NOT_CONVERTED });
      return;
    }
    const target = this.#backends.target(passed, scope);
    if (target === undefined) {
      respond({ directResponse: NOT_CONVERTED });
      return;
    }
    const request = requestOf(this.#reading, scope, server, target.authority, kind === "regex" ? path : undefined);
    const bare = group("without slash");
    if (bare.length > 0)
      this.#addRoute(directive, listeners, bare, { requestRedirect: { path: { full: path }, status: 301 } }, []);
    // One route where it can be: limits count for each route.
    const parts: readonly LocationMatch["part"][] = ["whole", "beyond"];
    const routes = Map.groupBy(
      parts.filter((part) => group(part).length > 0),
      (part) => JSON.stringify(pathOf(location, part, target.uri, group(part))),
    );
    for (const [rewrite, own] of routes) {
      const policies = merged(common, calling(scope), request, JSON.parse(rewrite));
      this.#addRoute(directive, listeners, own.flatMap(group), policies, [target.backend]);
    }
  }

  /** Of `try_files … @name`: the block that requests go to where files are missing. */
  #fallbackOf(block: readonly Directive[], server: Server): readonly Directive[] | undefined {
    const tried = valuesOf(block, "try_files")[0];
    const name = tried?.args.at(-1);
    if (tried === undefined || name === undefined || !name.startsWith("@")) return undefined;
    this.#reading.find("error", tried, "files are not served: every request goes to the server", FILES_REMEDY);
    const named = valuesOf(server.block, "location").find(({ args }) => args[0] === name);
    return named?.block;
  }

  #addRoute(
    directive: Directive,
    listeners: readonly string[],
    matches: readonly Json[],
    policies: Json,
    backends: readonly Json[],
  ): void {
    const wanted = nameOf(
      directive.name === "location"
        ? `${(listeners[0] ?? "").split("/")[1]}${directive.args.at(-1)}`
        : `${(listeners[0] ?? "").split("/")[1]}-${directive.name}`,
    );
    const from = `${directive.file}:${directive.line}: ${textOf(directive)}`;
    this.#routes.push({
      name: this.#names.unique(wanted),
      from,
      at: directive,
      listeners,
      matches,
      policies,
      backends,
    });
  }
}

/** A restriction that the conversion would lose: a route must not admit more than its location did. `others`: known already. */
function lostRestriction(scope: Scope, others: readonly Directive[]): Directive | undefined {
  const names = new Set(scope.flatMap((block) => block.map(({ name }) => name)));
  const named = [...names].filter(mayRestrict).flatMap((name) => one(scope, name) ?? []);
  const rules = nearest(scope, ({ name }) => name === "allow" || name === "deny");
  const unread = rules.filter(
    ({ args: [network = ""] }) => network !== "all" && isIP(network.split("/")[0] ?? "") === 0,
  );
  // The rules are about the addresses that proxies report, and would now be about those of the proxies.
  const reported = rules.length > 0 ? all(scope, "set_real_ip_from") : [];
  return [...named.filter(({ args }) => args[0] !== "off"), ...others, ...unread, ...reported][0];
}

/** Conditions of redirects to the one name of a site, and of answers to preflight requests. */
const HARMLESS = /^\(\s*\$(?:host|http_host|server_name|scheme|https|request_method)\b/;

/** Whether an `if` keeps requests out. */
function refuses({ args, block = [] }: Directive): boolean {
  const isHarmless = HARMLESS.test(args.join(" ").replace(/^\(?/, "("));
  return block.some(
    (each) =>
      each.name === "deny" ||
      (each.name === "return" && (!isHarmless || /^[45]\d\d$/.test(each.args[0] ?? ""))) ||
      (each.name === "rewrite" && !isHarmless && !/^\(\s*!?-/.test(args.join(" "))),
  );
}

function textOf({ name, args }: Directive): string {
  return [name, ...args].join(" ");
}

/** Whether a block has restrictions of its own. */
function keepsOut(block: readonly Directive[]): boolean {
  return block.some(
    (each) =>
      ["allow", "deny", "auth_basic"].includes(each.name) ||
      mayRestrict(each.name) ||
      (each.name === "if" && refuses(each)),
  );
}

/** An `if` of a server that can be a route: for a host, or without one for requests without TLS. */
function returningIf({
  args,
  block = [],
}: Directive): { readonly returned: Directive; readonly host?: string } | undefined {
  const condition = args.join(" ").replace(/^\(\s*|\s*\)$/g, "");
  const returned = valuesOf(block, "return")[0];
  const [, host] = /^\$(?:host|http_host) =\s*"?([\w.-]+)"?$/.exec(condition) ?? [];
  const isScheme = /^\$scheme (= "?http"?|!= "?https"?)$/.test(condition);
  if (returned === undefined || (host === undefined && !isScheme)) return undefined;
  return { returned, ...(host !== undefined && { host }) };
}

/** Whether a backend gets the addresses that clients claim to have passed. */
function appendsForwardedFor(block: readonly Directive[]): boolean {
  return block.some(
    ({ name, args, block: inner = [] }) =>
      (name === "proxy_set_header" && args[1] === "$proxy_add_x_forwarded_for") || appendsForwardedFor(inner),
  );
}

/**
 * The handlers of a site as cases, the first of which that fits a request applies. Handlers that pass requests on become policies of the
 * cases after them; where they have a matcher, these cases are split in two.
 */
import { type Json, NOT_CONVERTED } from "../converted.ts";
import { Findings } from "../findings.ts";
import { merged } from "../merge.ts";
import { Names, nameOf } from "../names.ts";
import { IDLE, inOrder, OPEN, SETTINGS, UNSERVED } from "./directives.ts";
import { type ErrorPage, errorPage, pagePolicies } from "./error-pages.ts";
import { layerOf, responseOf, strippedPrefix } from "./handlers.ts";
import {
  and,
  type Clients,
  type Condition,
  isAlways,
  isEmpty,
  type Matcher,
  matcherOf,
  mayMeet,
  pathOf,
} from "./matchers.ts";
import type { Directive } from "./parse.ts";
import { type Proxied, proxied } from "./proxy.ts";

export interface Case {
  readonly at: Directive;
  readonly condition: Condition;
  readonly policies: Json;
  readonly backends: readonly Json[];
  /** It keeps requests from a backend, or lets only some of them through. */
  readonly isRestricted: boolean;
}

/** Policies of requests that meet a condition. */
interface Layer {
  readonly at: Directive;
  readonly condition: Condition;
  /** Requests that it does not concern, although they meet the condition. */
  readonly except?: readonly Condition[];
  readonly policies: Json;
  /** What it restricts is not converted. */
  readonly isLost: boolean;
  /** Matchers after it see another path or query than the client sent. */
  readonly changesUri?: true;
}

/** What a case makes of its requests. */
interface Outcome {
  readonly policies: Json;
  readonly backends: readonly Json[];
}

const CLOSED: Outcome = { policies: { directResponse: NOT_CONVERTED }, backends: [] };
/** Policies that keep requests out; one of a kind cannot stand for two. */
const RESTRICTING = ["basicAuth", "extAuthz", "ipAccess"];
/** A case that more handlers with matchers concern is closed. */
const MAX_VARIANTS = 64;
/** Handlers with policies that keep no request out. */
const HARMLESS = new Set(["header", "request_header", "request_body", "encode", "rewrite", "uri"]);

export class Cases {
  readonly #label: string;
  readonly #backends: Json[];
  readonly #findings: Findings;
  readonly #clients: Clients;
  /** The matchers of the block and of those around it. */
  #named: ReadonlyMap<string, Directive> = new Map();
  readonly #pools = new Names();
  readonly #cases: Case[] = [];
  #pages: readonly ErrorPage[] = [];

  /** `backends`: the named ones, to which pools are added. */
  constructor(label: string, backends: Json[], clients: Clients, findings: Findings) {
    this.#label = label;
    this.#backends = backends;
    this.#clients = clients;
    this.#findings = findings;
    for (const { name } of backends) this.#pools.unique(String(name));
  }

  /** `lost`: a restriction of the whole site that is not converted. */
  of(block: readonly Directive[], lost: Directive | undefined): readonly Case[] {
    const [first] = block;
    this.#named = withMatchers(this.#named, block);
    const layers: Layer[] = [];
    if (lost !== undefined) {
      this.#sayLost(lost, {});
      layers.push({ at: lost, condition: {}, policies: {}, isLost: true });
    }
    const handlers = block.filter(({ name }) => !name.startsWith("@") && !SETTINGS.includes(name));
    for (const each of block.filter(({ name }) => name === "log"))
      this.#findings.find("note", each, "log is left out: frontendPolicies.accessLog chooses what is logged");
    this.#addPages(
      block.filter(({ name }) => name === "handle_errors"),
      layers,
    );
    const isHandled = this.#walk(inOrder(handlers, this.#named), {}, layers);
    const last = handlers.at(-1) ?? first;
    // A site without a handler responds with an empty page.
    if (!isHandled && last !== undefined)
      this.#emit(last, {}, layers, { policies: { directResponse: { status: 200 } }, backends: [] });
    return this.#cases;
  }

  #addPages(handlers: readonly Directive[], layers: Layer[]): void {
    const pages = handlers.map((each) => errorPage(each, this.#findings));
    // The first one that fits a status applies, so pages after one that is left out could be the wrong ones.
    const last = pages.indexOf(undefined);
    this.#pages = pages.slice(0, last < 0 ? undefined : last).filter((each) => each !== undefined);
    const [first] = this.#pages;
    if (first !== undefined)
      layers.push({ at: first.at, condition: {}, policies: pagePolicies(this.#pages), isLost: false });
  }

  /** Whether all requests that meet `base` have a case. */
  #walk(handlers: readonly Directive[], base: Condition, layers: Layer[]): boolean {
    for (const [i, at] of handlers.entries()) {
      const isPathBlock = at.name === "handle_path";
      const { matcher: read, args, block } = matcherOf(at, this.#named, this.#clients);
      const matcher: Matcher =
        isPathBlock && at.args[0] !== undefined ? { condition: { paths: [pathOf(at.args[0])] } } : read;
      if (Object.hasOwn(IDLE, at.name)) {
        this.#findings.find("note", at, `${at.name} is left out: ${IDLE[at.name]}`);
        continue;
      }
      const seesUri = matcher.condition.paths !== undefined || matcher.condition.query !== undefined;
      const decides = !HARMLESS.has(at.name) && !Object.hasOwn(OPEN, at.name);
      if (seesUri && decides && this.#closesChanged(at, base, layers)) return true;
      const { condition, isWhole } = this.#conditionOf(base, matcher);
      if (isEmpty(condition)) continue;
      const { clients, ...others } = condition;
      const refusal =
        clients === undefined ? undefined : this.#refusal(at, args, block, handlers.slice(i + 1), clients.isNot);
      if (clients !== undefined && refusal !== undefined && isWhole) {
        const side = refusal.allows ? "allow" : "deny";
        layers.push({ at, condition: others, policies: { ipAccess: { [side]: clients.networks } }, isLost: false });
        if (!refusal.endsHere) continue;
      }
      const isExact = isWhole && (clients === undefined || refusal !== undefined);
      const layer = layerOf(at, args, block, this.#findings);
      if (layer !== undefined) {
        const except = and(base, matcher.condition) === undefined || clients !== undefined ? undefined : matcher.except;
        this.#addLayer(at, others, layer, isExact || except !== undefined, layers, except);
        continue;
      }
      const done = this.#handle(at, args, block, others, isExact, layers, handlers.slice(i + 1));
      if (done && isAlways(without(others, base))) return true;
    }
    return false;
  }

  /** Closes what meets `base` and has another path by now, which a route cannot match. Whether that is all of it. */
  #closesChanged(at: Directive, base: Condition, layers: readonly Layer[]): boolean {
    for (const layer of layers) {
      if (layer.changesUri === undefined || !mayMeet(layer.condition, base)) continue;
      const condition = and(layer.condition, base) ?? base;
      this.#findings.find(
        "error",
        at,
        `${at.name} ${at.args[0] ?? ""} matches what ${layer.at.name} in line ${layer.at.line} has changed, which a route cannot do: these requests get 501`,
        "match the path that clients send, before it is changed",
      );
      this.#emit(at, condition, layers, CLOSED);
      if (isAlways(without(condition, base))) return true;
    }
    return false;
  }

  /** `isWhole`: a route can have the condition; otherwise it has more requests. */
  #conditionOf(base: Condition, { condition, lost }: Matcher): { condition: Condition; isWhole: boolean } {
    const both = and(base, condition);
    return both === undefined ? { condition: base, isWhole: false } : { condition: both, isWhole: lost === undefined };
  }

  /** Whether the handler is served, and then every request that meets the condition. */
  #handle(
    at: Directive,
    args: readonly string[],
    block: readonly Directive[],
    condition: Condition,
    isExact: boolean,
    layers: Layer[],
    rest: readonly Directive[],
  ): boolean {
    if (Object.hasOwn(OPEN, at.name)) {
      this.#findings.find("error", at, `${at.name} has no equivalent here`, OPEN[at.name]);
      return false;
    }
    if (!isExact) {
      this.#findings.find(
        "error",
        at,
        `the condition of ${at.name} ${at.args[0] ?? ""} cannot be one of a route: requests that it may select get 501`,
        "write a route with these conditions in matches",
      );
      this.#emit(at, condition, layers, CLOSED);
      return true;
    }
    if (at.name === "handle" || at.name === "handle_path" || at.name === "route") {
      const own = at.name === "route" ? layers : [...layers];
      if (at.name === "handle_path") {
        const prefix = (at.args[0] ?? "").replace(/\*$/, "");
        const cel = `${strippedPrefix(prefix)} + request.pathAndQuery.stripPrefix(request.path)`;
        const policies = { transformations: { request: { set: { ":path": cel } } } };
        own.push({ at, condition, policies, isLost: false, changesUri: true });
      }
      const named = this.#named;
      this.#named = withMatchers(named, block);
      const inner = block.filter(({ name }) => !name.startsWith("@"));
      const isHandled = this.#walk(at.name === "route" ? inner : inOrder(inner, this.#named), condition, own);
      this.#named = named;
      if (isHandled) return true;
      if (at.name === "route") return false;
      const goesOn = rest.some(({ name }) => !name.startsWith("handle"));
      if (goesOn)
        this.#findings.find(
          "error",
          at,
          `requests of ${at.name} ${at.args[0] ?? ""} get 501: it ends no request, and what follows is not applied`,
          "name the backend in it",
        );
      this.#emit(at, condition, own, goesOn ? CLOSED : { policies: { directResponse: { status: 200 } }, backends: [] });
      return true;
    }
    this.#emit(at, condition, layers, this.#outcomeOf(at, args, block, condition));
    return true;
  }

  #addLayer(
    at: Directive,
    condition: Condition,
    layer: Json | "lost",
    isExact: boolean,
    layers: Layer[],
    except: readonly Condition[] = [],
  ): void {
    const restricts = layer === "lost" || RESTRICTING.some((kind) => layer[kind] !== undefined);
    const change = (at.name === "rewrite" || at.name === "uri") && ({ changesUri: true } as const);
    if (layer !== "lost" && (isExact || !restricts)) {
      if (isExact || change)
        layers.push({ at, condition, except, policies: isExact ? layer : {}, isLost: false, ...change });
      if (!isExact)
        this.#findings.find(
          "error",
          at,
          `${at.name} ${at.args.join(" ")} is left out: its condition cannot be one of a route`,
          "write a route with these conditions in matches",
        );
      return;
    }
    this.#sayLost(at, condition);
    layers.push({ at, condition, policies: {}, isLost: true });
  }

  #sayLost(at: Directive, { paths }: Condition): void {
    const where = paths === undefined ? "all requests of the site" : "requests that it may select";
    this.#findings.find(
      "error",
      at,
      `${where} get 501: ${[at.name, ...at.args].join(" ")} may restrict them, and is not converted`,
      "add the policy that takes its place, then remove directResponse and name the backend",
    );
  }

  #outcomeOf(at: Directive, args: readonly string[], block: readonly Directive[], condition: Condition): Outcome {
    const response = responseOf(at, args, block, this.#pages, this.#findings);
    if (response !== undefined) return { policies: response, backends: [] };
    if (at.name === "reverse_proxy") {
      const found = proxied(at, args, block, this.#findings);
      return found === undefined ? CLOSED : { policies: found.policies, backends: [this.#backendOf(found)] };
    }
    if (Object.hasOwn(UNSERVED, at.name)) {
      this.#findings.find("error", at, `${at.name} has no equivalent: its requests get 501`, UNSERVED[at.name]);
      return CLOSED;
    }
    this.#sayLost(at, condition);
    return CLOSED;
  }

  #backendOf({ endpoints, algorithm, calls }: Proxied): Json {
    const policies = Object.keys(calls).length > 0 && { policies: calls };
    const [only] = endpoints;
    if (only !== undefined && endpoints.length === 1) return { host: only.host, ...policies };
    const entry = { endpoints, ...(algorithm !== undefined && { loadBalancer: { algorithm } }), ...policies };
    const known = this.#backends.find(({ name: _, ...others }) => JSON.stringify(others) === JSON.stringify(entry));
    if (known !== undefined) return { backend: `/${String(known.name)}` };
    const name = this.#pools.unique(nameOf(this.#label));
    this.#backends.push({ name, ...entry });
    return { backend: `/${name}` };
  }

  /**
   * Whether addresses of clients decide who gets in: a refusal for them, or a block for them before a refusal for all others. Undefined:
   * they choose between other things, which a route cannot.
   */
  #refusal(
    at: Directive,
    args: readonly string[],
    block: readonly Directive[],
    rest: readonly Directive[],
    isNot: boolean,
  ): { readonly allows: boolean; readonly endsHere: boolean } | undefined {
    if (isRefusal({ ...at, args, block })) return { allows: isNot, endsHere: false };
    const next = rest.find(
      ({ name }) => name === "handle" || name === "respond" || name === "abort" || name === "error",
    );
    const inner = next?.name === "handle" && next.args.length === 0 ? next.block?.[0] : next;
    const others = rest.filter(
      (each) => each !== next && layerOf(each, each.args, each.block ?? [], new Findings()) === undefined,
    );
    if (at.name !== "handle" || inner === undefined || !isRefusal(inner) || others.length > 0) return undefined;
    return { allows: !isNot, endsHere: true };
  }

  /** Adds the cases of an outcome, one for each combination of the layers that may concern it. */
  #emit(at: Directive, condition: Condition, layers: readonly Layer[], outcome: Outcome): void {
    let variants: readonly Variant[] = [{ condition, policies: {}, isClosed: false }];
    for (const layer of layers) variants = variants.flatMap((each) => split(each, layer));
    if (variants.length > MAX_VARIANTS) {
      this.#findings.find(
        "error",
        at,
        `${at.name} is concerned by too many handlers: its requests get 501`,
        "write its routes by hand",
      );
      variants = [{ condition, policies: {}, isClosed: true }];
    }
    for (const each of variants) {
      const { policies, backends } = each.isClosed ? CLOSED : outcome;
      const all = each.isClosed ? policies : merged(each.policies, policies);
      const isRestricted = backends.length === 0 || RESTRICTING.some((kind) => each.policies[kind] !== undefined);
      this.#cases.push({ at, condition: each.condition, policies: all, backends, isRestricted });
    }
  }
}

interface Variant {
  readonly condition: Condition;
  readonly policies: Json;
  readonly isClosed: boolean;
}

/** The part that the layer concerns comes first. */
function split(variant: Variant, layer: Layer): readonly Variant[] {
  if (variant.isClosed || !mayMeet(variant.condition, layer.condition)) return [variant];
  const both = and(variant.condition, layer.condition);
  const restricts = layer.isLost || RESTRICTING.some((kind) => layer.policies[kind] !== undefined);
  const { except = [], ...others } = layer;
  if (except.length > 0) {
    const exempt = except
      .filter((each) => mayMeet(variant.condition, each))
      .map((each) => and(variant.condition, each));
    if (exempt.some((each) => each === undefined)) return [restricts ? { ...variant, isClosed: true } : variant];
    const known = exempt.filter((each) => each !== undefined);
    if (known.some((each) => isAlways(without(each, variant.condition)))) return [variant];
    return [...known.map((each) => ({ ...variant, condition: each })), ...split(variant, others)];
  }
  const isTwice = RESTRICTING.some(
    (kind) => layer.policies[kind] !== undefined && variant.policies[kind] !== undefined,
  );
  const isClosed = layer.isLost || isTwice || (both === undefined && restricts);
  const concerned: Variant = {
    condition: both ?? variant.condition,
    policies: merged(variant.policies, layer.policies),
    isClosed,
  };
  if (both === undefined) return isClosed ? [concerned] : [variant];
  return isAlways(without(both, variant.condition)) ? [concerned] : [concerned, variant];
}

/** The parts of a condition that `base` does not have. */
function without(condition: Condition, base: Condition): Condition {
  return Object.fromEntries(
    Object.entries(condition).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(base[name as keyof Condition]),
    ),
  );
}

function withMatchers(
  named: ReadonlyMap<string, Directive>,
  block: readonly Directive[],
): ReadonlyMap<string, Directive> {
  return new Map([
    ...named,
    ...block.flatMap((each) => (each.name.startsWith("@") ? [[each.name, each] as const] : [])),
  ]);
}

function isRefusal({ name, args }: Directive): boolean {
  if (name === "abort" || name === "error") return true;
  return name === "respond" && args.some((each) => /^[45]\d\d$/.test(each));
}

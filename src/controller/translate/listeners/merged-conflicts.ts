/**
 * Listeners of several Gateways that share their proxies. Their authors need not know each other, so no request may reach another's listener
 * because of a name that is more specific: between Gateways, hostnames that overlap conflict, and not only equal ones. The listener that
 * was there first wins. Gateways say when they were created, but listeners do not; so a listener that has no conflict gets a condition that
 * says so (`reservation`). It comes before one that is new, and an older Gateway cannot take the host of a younger one.
 */
import { covers } from "../../../base/hostnames.ts";
import type { Gateway, ListenerSet } from "../../../kube/objects.ts";
import { defineQuery, type Pair, type Read } from "../../graph/graph.ts";
import { isTrue } from "../model/conditions.ts";
import { membersOfClass } from "../model/fleets.ts";
import type { ConditionDraft, Problem } from "../model/model.ts";
import { type Aged, byPrecedence, createdAt } from "../model/precedence.ts";
import { type DeclaredListener, declaredListeners } from "./declarations.ts";
import { portOf, rivalry, transportOf } from "./listener-conflicts.ts";
import { type Declaration, listenerKey, ownProblem } from "./listeners.ts";

/** The conflicts of a Gateway's listeners with those of other Gateways of its class, by key of the listener. Subject: class and Gateway. */
export const mergedConflicts = defineQuery<Readonly<Record<string, Problem>>, Pair>(
  "mergedConflicts",
  (read, [gatewayClass, gateway]) => {
    const declared = read.query(declaredListeners, gateway);
    const unreserved = declared.flatMap((each) => {
      const problem = ingressProblem(each, declared);
      return problem === undefined ? [] : [[listenerKey(each.declaration), problem] as const];
    });
    return { ...Object.fromEntries(unreserved), ...read.query(conflictsOfClass, gatewayClass)[gateway] };
  },
);

/**
 * The condition of a listener that has its port and hostname at the shared proxies of a class. The class is a part of its type: a ListenerSet
 * is the same generation after its Gateway has joined the class, and what it had elsewhere counts for nothing here.
 */
export function reservation(gatewayClass: string): ConditionDraft {
  const message = `No other Gateway of class ${gatewayClass} can have this port and hostname`;
  return isTrue(`shared.tracegate.dev/${gatewayClass}`, "Reserved", message);
}

/** Why an Ingress cannot add a listener: it has no conditions that reserve a host, so a listener of its Gateway has to. */
function ingressProblem({ declaration }: DeclaredListener, declared: readonly DeclaredListener[]): Problem | undefined {
  const { ingress, gateway, spec } = declaration;
  const isReserved = ({ declaration: { ingress, spec: other }, conflict }: DeclaredListener): boolean =>
    ingress === undefined &&
    conflict === undefined &&
    other.port === spec.port &&
    transportOf(other) === transportOf(spec) &&
    covers((other.hostname ?? "").toLowerCase(), spec.hostname ?? "");
  if (ingress === undefined || declared.some(isReserved)) return undefined;
  return {
    reason: "NotReserved",
    message: `Gateway ${gateway} shares its proxies, and none of its own listeners on port ${spec.port} covers this host; add an HTTPS listener that does, such as one for *.example.com`,
  };
}

/** The same of all Gateways of a class. */
const conflictsOfClass = defineQuery<Readonly<Record<string, Readonly<Record<string, Problem>>>>>(
  "conflictsOfClass",
  (read, gatewayClass) => {
    const conflicts: Record<string, Record<string, Problem>> = {};
    const ports = new Map<string, SharedPort>();
    const claims = read.query(membersOfClass, gatewayClass).flatMap((gateway) => read.query(claimsOf, gateway));
    // Sorting is stable: listeners of one Gateway keep their order.
    for (const claim of claims.toSorted((a, b) => a.standing - b.standing || byPrecedence(a, b))) {
      const { declaration } = claim;
      const name = portOf(declaration);
      const port = ports.get(name) ?? new SharedPort(transportOf(declaration.spec));
      ports.set(name, port);
      const rival = port.rivalOf(declaration);
      if (rival === undefined) {
        port.add(declaration);
        continue;
      }
      const own = conflicts[declaration.gateway] ?? {};
      own[listenerKey(declaration)] = rivalry(declaration, rival);
      conflicts[declaration.gateway] = own;
    }
    return conflicts;
  },
);

/** A listener without problems among those of its own Gateway. */
interface Claim extends Aged {
  readonly declaration: Declaration;
  /** The lower, the earlier it comes. */
  readonly standing: Standing;
}

/** By the last status: `held` by the spec of now, held by a former one, neither held nor lost yet, and lost to another. */
const STANDINGS = { held: 0, formerly: 1, new: 2, lost: 3 } as const;
type Standing = (typeof STANDINGS)[keyof typeof STANDINGS];

/** Key: `<namespace>/<name>` of a Gateway. */
const claimsOf = defineQuery<readonly Claim[]>("claimsOf", (read, key) => {
  const gateway = read.get("Gateway", key);
  if (gateway === undefined) return [];
  const created = createdAt(gateway);
  const { type } = reservation(gateway.spec.gatewayClassName);
  const declared = read.query(declaredListeners, key);
  return declared.flatMap((each) => {
    const { declaration, conflict } = each;
    if (conflict !== undefined || ownProblem(declaration.spec) !== undefined) return [];
    if (ingressProblem(each, declared) !== undefined) return [];
    return { key, created, declaration, standing: standingOf(declaringObject(read, declaration), declaration, type) };
  });
});

/** undefined: an Ingress, which has no status of its listeners. */
function declaringObject(
  read: Read,
  { gateway, listenerSet, ingress }: Declaration,
): Gateway | ListenerSet | undefined {
  if (listenerSet !== undefined) return read.get("ListenerSet", listenerSet);
  return ingress === undefined ? read.get("Gateway", gateway) : undefined;
}

function standingOf(object: Gateway | ListenerSet | undefined, { spec }: Declaration, reserved: string): Standing {
  const { conditions = [] } = object?.status?.listeners?.find(({ name }) => name === spec.name) ?? {};
  const held = conditions.find(({ type }) => type === reserved);
  // The spec may have changed since: a listener must not bring another hostname along under its name.
  if (held !== undefined)
    return held.observedGeneration === object?.metadata.generation ? STANDINGS.held : STANDINGS.formerly;
  return conditions.some(({ type, status }) => type === "Conflicted" && status === "True")
    ? STANDINGS.lost
    : STANDINGS.new;
}

/** The listeners of a port that have it. Finds rivals without comparing all: a class may have thousands of listeners. */
class SharedPort {
  readonly #transport: string;
  #first: Declaration | undefined;
  /** By hostname. */
  readonly #at = new Map<string, Declaration[]>();
  /** By wildcards that cover the hostname. */
  readonly #below = new Map<string, Declaration[]>();

  constructor(transport: string) {
    this.#transport = transport;
  }

  /** A listener of another Gateway that a listener cannot share the port with. */
  rivalOf({ spec, gateway }: Declaration): Declaration | undefined {
    const isOther = (each: Declaration): boolean => each.gateway !== gateway;
    // The port has another Gateway then: inside one, such listeners conflict already.
    const isWhole = this.#transport === "TCP" || this.#transport === "UDP";
    if (isWhole || this.#transport !== transportOf(spec)) return this.#first;
    const hostname = (spec.hostname ?? "").toLowerCase();
    const wider = [hostname, ...wildcardsAbove(hostname)].flatMap((each) => this.#at.get(each) ?? []);
    return [...wider, ...(this.#below.get(hostname) ?? [])].find(isOther);
  }

  add(declaration: Declaration): void {
    this.#first ??= declaration;
    const hostname = (declaration.spec.hostname ?? "").toLowerCase();
    file(this.#at, hostname, declaration);
    for (const each of wildcardsAbove(hostname)) file(this.#below, each, declaration);
  }
}

/** One listener of each of two Gateways is enough: whoever asks is told of one that is not its own. */
function file(map: Map<string, Declaration[]>, name: string, declaration: Declaration): void {
  const known = map.get(name) ?? [];
  if (known.length < 2 && known.every(({ gateway }) => gateway !== declaration.gateway)) known.push(declaration);
  map.set(name, known);
}

/** Those that cover a hostname, other than itself: of `a.b.c` `*.b.c`, `*.c` and the empty one, which is any. */
function wildcardsAbove(hostname: string): readonly string[] {
  if (hostname === "") return [];
  const labels = hostname.split(".").slice(hostname.startsWith("*.") ? 2 : 1);
  return [...labels.map((_, i) => `*.${labels.slice(i).join(".")}`), ""];
}

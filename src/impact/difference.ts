/**
 * What differs between the decisions of two configurations about one request. Where they depend on what is not known, each way in which that
 * may turn out is compared with the same way on the other side: a token that is valid before is valid after.
 */
import type { ErrorCode } from "../base/errors.ts";
import { fieldsOf as fieldsOfJson, jsonOf } from "../base/fields.ts";
import { ASSUMPTIONS, isAssumption, withoutPlace } from "../rehearsal/assumptions.ts";
import { CHANGING_FIELDS } from "../rehearsal/changing-fields.ts";
import { CONDITION } from "../rehearsal/condition.ts";
import type { DecidedHead, DecidedResponse, Decision, Decisions, PossibleDecision } from "../rehearsal/decider.ts";

/** How a change of the configuration changes what happens to requests. */
export type ChangeClass =
  | "granted"
  | "refused"
  | "maybeGranted"
  | "maybeRefused"
  | "movedRoute"
  | "movedBackend"
  | "changedOnTheWay"
  | "unknown";

/** What happens to a share of the requests that are like the sample. */
export interface Difference {
  readonly class: ChangeClass | "unchanged";
  /** 1, or less if backends are chosen by weight. */
  readonly share: number;
  readonly before: Decision;
  readonly after: Decision;
  /** What is different on the way or in the gateway's own response, such as `path` or the name of a header field. */
  readonly parts: readonly string[];
  /** What is different in a response of the backend on its way back, which is taken to have status 200. */
  readonly responseParts: readonly string[];
  /** What is not known, though the difference depends on it. */
  readonly needs: readonly string[];
}

const NOTHING: readonly string[] = [];

/** How what is not known may turn out, with the decisions in that case: more than one if backends are chosen by weight. */
interface Case {
  /** By the choice, with what else its result depends on. */
  readonly values: ReadonlyMap<string, unknown>;
  readonly decisions: { readonly decision: Decision; share: number }[];
}

/** The differences between what the configuration before and the one after may decide; their shares add up to 1. */
export function differencesOf(before: Decisions, after: Decisions): readonly Difference[] {
  const [first, ...otherBefore] = before.possible;
  const [second, ...otherAfter] = after.possible;
  if (first === undefined || second === undefined) throw new Error("a request without a decision");
  if (otherBefore.length === 0 && otherAfter.length === 0) return [difference(first.decision, second.decision, 1)];
  const pairs = casesOf(before).flatMap((was) =>
    casesOf(after)
      .filter((will) => agree(was.values, will.values))
      .map((will) => ({ values: new Map([...was.values, ...will.values]), found: couple(was, will) })),
  );
  // Requests that both refuse cannot change.
  const [passing, ...others] = pairs.filter(({ found }) => !found.every(isRefusedByBoth));
  const isComplete = before.omitted === 0 && after.omitted === 0;
  const signatures = new Set(pairs.map(({ found }) => signatureOf(found)));
  // One that passes has the route of the request.
  const alike = passing ?? pairs[0];
  if (alike !== undefined && signatures.size === 1 && isComplete) return alike.found;
  const needs = [...new Set(decisive(pairs).map((choice) => needOf(choice, [...before.possible, ...after.possible])))];
  if (!isComplete) needs.push("more ways in which what is not known may turn out");
  const isOne = passing !== undefined && others.every(({ found }) => signatureOf(found) === signatureOf(passing.found));
  if (isOne && isComplete && !passing.found.some((each) => each.class === "granted" || each.class === "refused"))
    return passing.found.map((each) => (each.class === "unchanged" ? each : { ...each, needs }));
  return [
    open(
      pairs.flatMap(({ found }) => found),
      needs,
      difference(first.decision, second.decision, 1),
    ),
  ];
}

/** One difference for several that are possible. */
function open(found: readonly Difference[], needs: readonly string[], otherwise: Difference): Difference {
  const granted = found.find((each) => each.class === "granted");
  const refused = found.find((each) => each.class === "refused");
  const changed = found.find((each) => each.class !== "unchanged");
  const shown = granted ?? refused ?? changed ?? otherwise;
  const isOne = (granted === undefined) !== (refused === undefined);
  const name = !isOne ? "unknown" : granted === undefined ? "maybeRefused" : "maybeGranted";
  return { ...shown, class: name, share: 1, needs };
}

function casesOf({ possible }: Decisions): readonly Case[] {
  const cases = new Map<string, Case>();
  for (const { decision, chosen } of possible) {
    const values = new Map<string, unknown>();
    let share = 1;
    for (const [name, { route, policy, value, share: shareOf }] of chosen) {
      if (route === undefined) values.set(choiceOf(name, policy), value);
      else share *= shareOf(value);
    }
    const key = JSON.stringify([...values]);
    const known = cases.get(key) ?? { values, decisions: [] };
    cases.set(key, known);
    known.decisions.push({ decision, share });
  }
  return [...cases.values()];
}

/** Between the name of a choice and the policy that it is about. */
const OF_POLICY = " of ";

/** A decision of a service or about a credential is the same on both sides only if the policies are the same that ask for it. */
function choiceOf(name: string, policy: string | undefined): string {
  return policy === undefined ? name : `${name}${OF_POLICY}${policy}`;
}

function agree(some: ReadonlyMap<string, unknown>, others: ReadonlyMap<string, unknown>): boolean {
  for (const [name, value] of some) if (others.has(name) && others.get(name) !== value) return false;
  return true;
}

/**
 * Compares the decisions of one case. Those that are chosen by weight are paired so that as few requests as possible change: that is what
 * weights change for all of them together.
 */
function couple(was: Case, will: Case): readonly Difference[] {
  const before = was.decisions.map((each) => ({ ...each }));
  const after = will.decisions.map((each) => ({ ...each }));
  const found: Difference[] = [];
  const pair = (isWanted: (each: Difference) => boolean): void => {
    for (const one of before)
      for (const other of after) {
        const share = Math.min(one.share, other.share);
        if (share <= ROUNDING) continue;
        const each = difference(one.decision, other.decision, share);
        if (!isWanted(each)) continue;
        found.push(each);
        one.share -= share;
        other.share -= share;
      }
  };
  pair((each) => each.class === "unchanged");
  pair(() => true);
  return found;
}

/** Shares are products of quotients. */
const ROUNDING = 1e-9;

function isRefusedByBoth({ before, after }: Difference): boolean {
  return before.refused && after.refused;
}

/** Alike for what changes in the same way. */
function signatureOf(found: readonly Difference[]): string {
  return JSON.stringify(
    found.map(({ class: name, share, parts, responseParts, before, after }) => {
      const places = name === "unchanged" ? [] : [before.route, before.backend, after.route, after.backend];
      return [name, share, parts, responseParts, places];
    }),
  );
}

/** The choices by whose value the differences change. */
function decisive(
  pairs: readonly { readonly values: Case["values"]; readonly found: readonly Difference[] }[],
): string[] {
  const choices = new Set(pairs.flatMap(({ values }) => [...values.keys()]));
  return [...choices].filter((choice) => {
    const groups = Map.groupBy(
      pairs.filter(({ values }) => values.has(choice)),
      ({ values }) => values.get(choice),
    );
    const results = [...groups.values()].map((group) =>
      [...new Set(group.map(({ found }) => signatureOf(found)))].sort(),
    );
    return new Set(results.map((each) => JSON.stringify(each))).size > 1;
  });
}

/** What would have to be known to make the choice. */
function needOf(choice: string, possible: readonly PossibleDecision[]): string {
  const name = choice.startsWith(CONDITION) ? choice : (choice.split(OF_POLICY)[0] ?? choice);
  const needs = new Set(
    possible.flatMap((each) => each.needs.flatMap((need) => (need.choice === name ? need.what : []))),
  );
  if (needs.size > 0) return [...needs].join(" and ");
  const kind = withoutPlace(name);
  return isAssumption(kind) && ASSUMPTIONS[kind].values.includes("invalid")
    ? `whether the credential for ${kind} is valid`
    : `the decision of ${name.replace("@", " at the ")}`;
}

/** Compares two decisions. */
function difference(before: Decision, after: Decision, share: number): Difference {
  const parts = partsOf(before, after);
  const responseParts = responsePartsOf(before, after);
  const isAlike = parts.length === 0 && responseParts.length === 0;
  return { class: classOf(before, after, isAlike), share, before, after, parts, responseParts, needs: NOTHING };
}

function classOf(before: Decision, after: Decision, isAlike: boolean): Difference["class"] {
  if (before.refused !== after.refused) return after.refused ? "refused" : "granted";
  if (!before.refused && !isSameRoute(before, after)) return "movedRoute";
  if (!before.refused && before.backend !== after.backend) return "movedBackend";
  return isAlike ? "unchanged" : "changedOnTheWay";
}

/** A route that has no name is called by its position, which changes when another one comes before it. */
const BY_POSITION = /\/route\d+$/;

function isSameRoute({ route = "", path }: Decision, after: Decision): boolean {
  if (route === after.route) return true;
  const isSamePath = path?.type === after.path?.type && path?.value === after.path?.value;
  return isSamePath && BY_POSITION.test(route) && BY_POSITION.test(after.route ?? "");
}

/** What the backend, or else the client, would see of a difference. */
function partsOf(before: Decision, after: Decision): readonly string[] {
  const { sent } = before;
  if (sent !== undefined && after.sent !== undefined) return partsOfHead(sent, after.sent);
  if (sent !== undefined || after.sent !== undefined) return NOTHING;
  const codes = (each: Decision): readonly [number | undefined, ErrorCode | undefined] => [each.status, each.code];
  const [status, code] = codes(before);
  const [newStatus, newCode] = codes(after);
  return [
    ...(status === newStatus ? [] : ["status"]),
    ...(code === newCode ? [] : ["code"]),
    ...(before.refused || after.refused ? [] : fieldsOf(before.response?.headers ?? [], after.response?.headers ?? [])),
  ];
}

/** What the client would see of a difference in the response of a backend. */
function responsePartsOf(before: Decision, after: Decision): readonly string[] {
  if (before.sent === undefined || after.sent === undefined) return NOTHING;
  if (before.response === undefined && after.response === undefined) return NOTHING;
  const { response: was = UNCHANGED } = before;
  const { response: will = UNCHANGED } = after;
  if (was.status === will.status && isSameList(was, will)) return NOTHING;
  return [...(was.status === will.status ? [] : ["status"]), ...fieldsOf(was.headers, will.headers)];
}

/** A response that no policy changes. */
const UNCHANGED: DecidedResponse = { status: 200, headers: [] };

function partsOfHead(before: DecidedHead, after: DecidedHead): readonly string[] {
  const { method, target, authority } = before;
  const isAlike = method === after.method && target === after.target && authority === after.authority;
  if (isAlike && isSameList(before, after)) return NOTHING;
  return [
    ...(method === after.method ? [] : ["method"]),
    ...(target === after.target ? [] : ["path"]),
    ...(authority === after.authority ? [] : ["host"]),
    ...fieldsOf(before.headers, after.headers, before.id, after.id),
  ];
}

/** Header fields; `id`: of the request, if it has one. */
interface Fields {
  readonly headers: readonly string[];
  readonly id?: string | undefined;
}

/** The usual case, without an allocation: the same fields in the same order, but for those that always change. */
function isSameList({ headers, id }: Fields, after: Fields): boolean {
  if (headers.length !== after.headers.length) return false;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (name !== after.headers[i]) return false;
    const value = headers[i + 1];
    const other = after.headers[i + 1];
    if (value !== other && !CHANGING_FIELDS.has(name) && !(value === id && other === after.id)) return false;
  }
  return true;
}

/** The names of fields that are added, removed or have other values, whatever their order is. */
function fieldsOf(before: readonly string[], after: readonly string[], id?: string, newId?: string): string[] {
  const valuesIn = (list: readonly string[], own: string | undefined): Map<string, string> => {
    const values = new Map<string, string>();
    for (let i = 0; i < list.length; i += 2) {
      const name = (list[i] as string).toLowerCase();
      const value = list[i + 1] ?? "";
      const shown = value === own ? "" : withoutTimes(value);
      if (!CHANGING_FIELDS.has(name)) values.set(name, `${values.get(name) ?? ""}\n${shown}`);
    }
    return values;
  };
  const was = valuesIn(before, id);
  const will = valuesIn(after, newId);
  return [...new Set([...was.keys(), ...will.keys()])].filter((name) => was.get(name) !== will.get(name)).sort();
}

/** Claims that differ each time a token is made. */
const OF_TIME: ReadonlySet<string> = new Set(["exp", "iat", "jti", "nbf"]);

/** The claims of a token that the gateway has signed: its times and signature differ each time. Other values are returned as they are. */
function withoutTimes(value: string): string {
  const token = /^Bearer ([\w-]+)\.([\w-]+)\.[\w-]+$/.exec(value);
  if (token === null) return value;
  const [header, claims] = token
    .slice(1)
    .map((part) => fieldsOfJson(jsonOf(Buffer.from(part, "base64url").toString())));
  const lasting = Object.entries(claims ?? {}).filter(([name]) => !OF_TIME.has(name));
  return JSON.stringify([header, lasting]);
}

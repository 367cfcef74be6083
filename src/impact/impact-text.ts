/** An impact as people read it: a line for each change with the numbers of requests that it concerns, and up to three of them below. */
import { counted } from "../base/counted.ts";
import { formatOrigin, type Locate, withPlace } from "../base/origin.ts";
import type { ChangeClass } from "./difference.ts";
import type { Change, Decided, Impact, Tally } from "./impact.ts";

/** Changes that are shown, of each class. */
const MAX_SHOWN = 10;

/** What each class says about its requests, of which there is one or more. */
const SAID: Readonly<Record<ChangeClass, (change: Change, verbs: Verbs) => string>> = {
  granted: ({ before, after }, verbs) =>
    `${verbs.are} no longer ${refused(before)}: ${verbs.they} ${passing(after, verbs)}`,
  refused: ({ before, after }, { are, they, take }) =>
    `${are} ${refused(after)}${former(before, after, `${they} ${take}`)}`,
  maybeGranted: ({ before, needs }) => `may no longer be ${refused(before)}: that depends on ${list(needs)}`,
  maybeRefused: ({ after, needs }) => `may be ${refused(after)}: that depends on ${list(needs)}`,
  movedRoute: ({ before, after, needs }, verbs) =>
    `${verbs.take} the route ${after.route} instead of ${before.route}, and ${moved(before, after, verbs)}${provided(needs, verbs)}`,
  movedBackend: ({ before, after, needs }, verbs) =>
    `${moved(before, after, verbs)}${onRoute(after)}${provided(needs, verbs)}`,
  changedOnTheWay: (change, verbs) => {
    const { before, after, parts, needs } = change;
    const what =
      before.backend === undefined || after.backend === undefined
        ? `${verbs.get} another response of the gateway: ${responses(before, after, parts)}`
        : onTheWay(change, after.backend, verbs);
    return `${what}${onRoute(after)}${provided(needs, verbs)}`;
  },
  unknown: ({ before, after, needs }) =>
    `may change${onRoute({ route: before.route ?? after.route })}: that depends on ${list(needs)}`,
};

const MANY = { are: "are", they: "they", go: "go", get: "get", take: "take", reach: "reach", change: "do not change" };
type Verbs = Readonly<typeof MANY>;
const ONE: Verbs = {
  are: "is",
  they: "it",
  go: "goes",
  get: "gets",
  take: "takes",
  reach: "reaches",
  change: "does not change",
};

function verbsOf({ requests }: Tally): Verbs {
  return Math.round(requests) === 1 ? ONE : MANY;
}

/** The ways to change, the worst first. */
export const WORST_FIRST: readonly ChangeClass[] = [
  "refused",
  "maybeRefused",
  "granted",
  "maybeGranted",
  "movedRoute",
  "movedBackend",
  "changedOnTheWay",
  "unknown",
];

/** The text ends in a line break. `since`: ISO 8601, when the oldest sample arrived, if that is of interest. */
export function impactText(impact: Impact, since: string | null = null): string {
  const { samples, classes, changes, incomplete } = impact;
  if (samples === 0) return "There are no samples to judge by.\n";
  const lines = WORST_FIRST.flatMap((name) =>
    linesOf(
      changes.filter((change) => change.class === name),
      impact,
    ),
  );
  const { unchanged } = classes;
  const same = unchanged.samples === 0 ? "" : lineOf(unchanged, verbsOf(unchanged).change, impact);
  const note = incomplete === true ? "There are more changes than are listed here.\n" : "";
  return `Of ${about(impact).trimStart()} requests (${counted(samples, "sample")})${since === null ? "" : ` since ${since}`}\n${lines.join("")}${same}${note}`;
}

/** Only what would be refused, as lines without a last line break. `locate`: where the configuration after the change is written. */
export function refusedText(impact: Impact, locate: Locate): string {
  const refused = impact.changes
    .filter((change) => change.class === "refused")
    .map((change) => ({ ...change, after: withPlace(change.after, locate) }));
  return `Of ${about(impact).trimStart()} requests (${counted(impact.samples, "sample")})\n${linesOf(refused, impact).join("")}`.trimEnd();
}

/** A line for each of these changes, of one class, with its examples; most requests first. */
function linesOf(changes: readonly Change[], all: Impact): string[] {
  const width = widthOf(all);
  const shown = changes
    .slice(0, MAX_SHOWN)
    .map((change) => lineOf(change, changeText(change), all) + examples(change, width));
  const left = changes.length - MAX_SHOWN;
  return left > 0 ? [...shown, `${" ".repeat(width + 1)}and ${counted(left, "more change")} of this kind\n`] : shown;
}

/** What becomes different for the requests of a change, as the rest of a sentence that begins with their number. */
export function changeText(change: Change): string {
  return SAID[change.class](change, verbsOf(change));
}

function lineOf(tally: Tally, said: string, all: Impact): string {
  return `${about(tally).padStart(widthOf(all))} ${said} (${partText(tally, all)})\n`;
}

/** `33.1 %, 2 samples`: which part of all requests, and what that is known from. */
export function partText(tally: Tally, all: Tally): string {
  return `${percent(tally.requests / all.requests)}, ${counted(tally.samples, "sample")}`;
}

/** Characters of the numbers at the beginnings of lines. */
function widthOf({ requests }: Impact): number {
  return numberOf(requests).length + 2;
}

function examples({ examples: some }: Change, width: number): string {
  return some
    .map(({ method, authority, target }) => `${" ".repeat(width + 3)}${method} ${authority}${target}\n`)
    .join("");
}

/** The number of requests, with `≈` if it is an estimate. */
export function about({ requests, samples }: Tally): string {
  return `${requests === samples ? " " : "≈"} ${numberOf(requests)}`;
}

function numberOf(requests: number): string {
  return Math.round(requests).toLocaleString("en-US");
}

function percent(share: number): string {
  const value = share * 100;
  return value > 0 && value < 0.1 ? "< 0.1 %" : `${Number(value.toFixed(1))} %`;
}

function refused({ status, code, policy, origin, route }: Decided): string {
  const what = status === undefined ? "refused: the connection is closed" : `refused with ${status}`;
  const by = policy === undefined ? code && ` (${code})` : ` by ${policy}`;
  const at = origin === undefined ? "" : ` at ${formatOrigin(origin)}`;
  const { object } = origin ?? {};
  const isNamed = object !== undefined && `${object.namespace}/${object.name}` === route;
  return `${what}${by ?? ""}${at}${isNamed ? "" : onRoute({ route })}`;
}

function onRoute({ route }: { readonly route?: string | undefined }): string {
  return route === undefined ? "" : ` on the route ${route}`;
}

/** The route that they get now, if it is not the one that the refusal names. */
function former({ route }: Decided, after: Decided, taking: string): string {
  return route === undefined || route === after.route ? "" : `; now ${taking} the route ${route}`;
}

/** What has to be so, for requests that something unknown may refuse. */
function provided(needs: readonly string[] | undefined, { are, they }: Verbs): string {
  return needs === undefined ? "" : `, if ${they} ${are} not refused: that depends on ${list(needs)}`;
}

function passing(decided: Decided, { go, get }: Verbs): string {
  const { backend } = decided;
  return backend === undefined ? `${get} ${responseOf(decided)} from the gateway` : `${go} to ${backend}`;
}

function moved(before: Decided, after: Decided, verbs: Verbs): string {
  if (before.backend === after.backend) return `still ${passing(after, verbs)}`;
  return `${passing(after, verbs)} instead of ${before.backend ?? `getting ${responseOf(before)} from the gateway`}`;
}

/** What is different of requests that reach the same backend, and of its responses. */
function onTheWay({ parts = [], responseParts = [] }: Change, backend: string, { get, reach }: Verbs): string {
  const there = `${reach} ${backend} with a different ${list(parts)}`;
  if (responseParts.length === 0) return there;
  const back = `with a different ${list(responseParts)}`;
  return parts.length === 0 ? `${get} the response of ${backend} ${back}` : `${there}, and ${get} its response ${back}`;
}

function responses(before: Decided, after: Decided, parts: readonly string[] = []): string {
  if (before.status !== after.status) return `${responseOf(after)} instead of ${responseOf(before)}`;
  return `${after.status} with a different ${list(parts)}`;
}

/** Without a status, the gateway closes the connection. */
function responseOf({ status }: Decided): string {
  return status === undefined ? "no response" : String(status);
}

function list(words: readonly string[] = []): string {
  return words.join(", ");
}

/** Classes that have another name together. */
const TOGETHER: Readonly<Record<string, readonly ChangeClass[]>> = { moved: ["movedRoute", "movedBackend"] };

/** What `--fail-on` can name. */
export const FAIL_ON: readonly string[] = [...WORST_FIRST, ...Object.keys(TOGETHER)];

/** Whether requests change in one of these ways; each is one of FAIL_ON. */
export function changesIn({ classes }: Impact, names: readonly string[]): boolean {
  return WORST_FIRST.some(
    (name) =>
      classes[name].samples > 0 && (names.includes(name) || names.some((each) => TOGETHER[each]?.includes(name))),
  );
}

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { ROUTE_ORDERS, type RouteRow, type RoutesAnswer } from "../../src/admin/plane/answers.ts";
import { counted } from "../../src/base/counted.ts";
import { agoText, durationText } from "../../src/report/recorded.ts";
import { type AskError, ask } from "../ask.ts";
import { withTerm } from "../filter.ts";
import type { PageProps } from "../page.ts";
import { Origin } from "../parts/origin.tsx";
import { Problem } from "../parts/problem.tsx";
import { WhichRoute } from "../parts/which-route.tsx";
import { hashOf, queryNow, routeHash } from "../place.ts";
import { usePoll } from "../poll.ts";

/** Routes of a page, and milliseconds between two questions. */
const LIMIT = 100;
const PAUSE = 3000;

type Order = (typeof ROUTE_ORDERS)[number];

/** What the address says. */
interface Words {
  readonly search: string;
  /** Only routes of the listener with this key. */
  readonly listener: string;
  readonly sort: Order;
  readonly page: number;
}

/** All routes with their traffic, in the order in which they get requests or another one. */
export function Routes({ place: { query } }: PageProps): VNode {
  const words = wordsOf(query);
  const answer = useSignal<RoutesAnswer | undefined>(undefined);
  const problem = useSignal<AskError | undefined>(undefined);
  usePoll(
    JSON.stringify(words),
    PAUSE,
    async (signal) => {
      answer.value = await ask("/routes", { query: { ...words, limit: LIMIT }, signal });
    },
    (error) => {
      problem.value = error;
    },
  );
  return (
    <>
      <h1 class="hidden">Routes</h1>
      <WhichRoute />
      <search class="tools">
        <input
          type="search"
          aria-label="Search routes"
          placeholder="search: name, host, path, method, backend, listener"
          defaultValue={words.search}
          spellcheck={false}
          // Each letter asks, but the history keeps only the place.
          onInput={({ currentTarget: { value } }) =>
            location.replace(linkTo({ ...wordsOf(queryNow()), search: value, page: 1 }))
          }
        />
        {words.listener === "" ? null : (
          <span>
            of the listener {words.listener} · <a href={linkTo({ ...words, listener: "", page: 1 })}>all</a>
          </span>
        )}
      </search>
      <Problem problem={problem.value} />
      {answer.value === undefined ? null : (
        <>
          <Table routes={answer.value.routes} words={words} />
          <Pages answer={answer.value} words={words} />
        </>
      )}
    </>
  );
}

function wordsOf(query: URLSearchParams): Words {
  const { search = "", listener = "", sort, page = "1" } = Object.fromEntries(query);
  return {
    search,
    listener,
    sort: ROUTE_ORDERS.find((order) => order === sort) ?? "precedence",
    page: Number.parseInt(page, 10) || 1,
  };
}

function linkTo({ search, listener, sort, page }: Words): string {
  return hashOf("/routes", {
    search,
    listener,
    sort: sort === "precedence" ? "" : sort,
    page: page === 1 ? "" : String(page),
  });
}

/** The columns that sort, by what they sort. */
const HEADINGS: Readonly<Record<Order, string>> = {
  precedence: "order",
  name: "route",
  requests: "requests",
  errors: "errors",
  p50: "p50",
  p99: "p99",
  latest: "last request",
};

function Table({ routes, words }: { readonly routes: readonly RouteRow[]; readonly words: Words }): VNode {
  const areShadowed = routes.some(({ shadowedBy }) => shadowedBy !== undefined);
  const sorting = (sort: Order, type = ""): VNode => <Heading sort={sort} type={type} words={words} />;
  return (
    <section class="grid" tabIndex={0} aria-label="Routes">
      <table class="mono">
        <thead>
          <tr>
            {sorting("precedence", "number")}
            {sorting("name")}
            {areShadowed ? <th scope="col">shadowed by</th> : null}
            <th scope="col" class="more">
              hosts
            </th>
            <th scope="col">matches</th>
            <th scope="col" class="more">
              backends
            </th>
            {sorting("requests", "number")}
            {sorting("errors", "number")}
            {sorting("p50", "number more")}
            {sorting("p99", "number")}
            {sorting("latest", "number")}
            <th scope="col" class="more">
              at
            </th>
            <th scope="col" class="more">
              written at
            </th>
          </tr>
        </thead>
        <tbody>
          {routes.map((route, index) => (
            <Row key={index} route={route} areShadowed={areShadowed} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface HeadingProps {
  readonly sort: Order;
  readonly type: string;
  readonly words: Words;
}

function Heading({ sort, type, words }: HeadingProps): VNode {
  const isSorted = words.sort === sort;
  const ascends = sort === "precedence" || sort === "name";
  return (
    <th scope="col" class={type} aria-sort={isSorted ? (ascends ? "ascending" : "descending") : "none"}>
      <a href={linkTo({ ...words, sort, page: 1 })}>
        {HEADINGS[sort]}
        {isSorted ? (ascends ? " ↑" : " ↓") : ""}
      </a>
    </th>
  );
}

interface RowProps {
  readonly route: RouteRow;
  /** There is a column for what shadows a route. */
  readonly areShadowed: boolean;
}

function Row({ route, areShadowed }: RowProps): VNode {
  const {
    key,
    position,
    name,
    rule,
    shadowedBy = [],
    hostnames,
    matches,
    backends,
    bind,
    listener,
    group,
    origin,
  } = route;
  const at = group === undefined ? `${bind} ${listener}` : `group ${group}`;
  return (
    <tr>
      <td class="number quiet">{position}</td>
      <td>
        <a href={routeHash(key)}>{name}</a> {rule === undefined ? "" : <span class="quiet">{rule}</span>}
      </td>
      {areShadowed ? <Several texts={shadowedBy} type="warn" /> : null}
      <Several texts={hostnames} type="more" />
      <Several texts={matches} />
      <Several texts={backends.map(({ name, weight }) => (weight === 1 ? name : `${name} ×${weight}`))} type="more" />
      <Traffic route={route} />
      <td class="more">{at}</td>
      <td class="more">{origin === undefined ? null : <Origin origin={origin} />}</td>
    </tr>
  );
}

/** Nothing for a route of connections, which have no requests. */
function Traffic({ route }: { readonly route: RouteRow }): VNode {
  const { name, matches, requests, errors, p50, p99, latest, countedTogether } = route;
  if (matches.length === 0) return <td colSpan={5} />;
  return (
    <>
      <td class="number">
        {countedTogether === undefined ? null : (
          <span class="quiet" title={`${countedTogether} routes, which metrics count together`}>
            of {countedTogether}:{" "}
          </span>
        )}
        {requests === 0 ? (
          <span class="quiet">0</span>
        ) : (
          <a href={hashOf("/requests", { where: withTerm("", "route", name) })}>{requests}</a>
        )}
      </td>
      <td class="number">
        {errors === 0 ? (
          <span class="quiet">0</span>
        ) : (
          <a class="bad" href={hashOf("/requests", { where: withTerm("", "route", name), errors: "true" })}>
            {errors}
          </a>
        )}
      </td>
      <td class="number more">{p50 === undefined ? "" : durationText(p50)}</td>
      <td class="number">{p99 === undefined ? "" : durationText(p99)}</td>
      <td class="number" title={latest}>
        {latest === undefined ? <span class="quiet">none</span> : agoText(latest)}
      </td>
    </>
  );
}

/** The first of some texts, and how many more there are: all of them when the pointer rests on it. */
function Several({ texts, type }: { readonly texts: readonly string[]; readonly type?: string }): VNode {
  const [first = "", ...others] = texts;
  return (
    <td class={type} title={texts.join("\n")}>
      {first}
      {others.length === 0 ? null : <span class="quiet"> +{others.length}</span>}
    </td>
  );
}

function Pages({ answer, words }: { readonly answer: RoutesAnswer; readonly words: Words }): VNode {
  const { found, total, routes, since } = answer;
  const before = (words.page - 1) * LIMIT;
  const toPage = (page: number, name: string): VNode => <a href={linkTo({ ...words, page })}>{name}</a>;
  return (
    <nav class="status quiet" aria-label="Pages of routes">
      {found === total ? counted(total, "route") : `${found} of ${counted(total, "route")}`}
      {routes.length < found ? ` · ${before + 1} to ${before + routes.length}` : ""}
      <span title={since}> · requests since {since.slice(0, 16).replace("T", " ")} UTC</span>
      {words.page > 1 ? <> · {toPage(words.page - 1, "previous")}</> : null}
      {before + routes.length < found ? <> · {toPage(words.page + 1, "next")}</> : null}
    </nav>
  );
}

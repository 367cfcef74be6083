import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import type { BackendsAnswer, BackendView } from "../../src/admin/plane/backends.ts";
import { counted } from "../../src/base/counted.ts";
import { type AskError, ask } from "../ask.ts";
import type { PageProps } from "../page.ts";
import { ENDPOINT_COLUMNS, EndpointCells, EndpointHeadings } from "../parts/endpoint-cells.tsx";
import { Problem } from "../parts/problem.tsx";
import { hashOf, queryNow } from "../place.ts";
import { usePoll } from "../poll.ts";

/** Backends, and endpoints of each, at most: a search finds the others. */
const LIMIT = 100;
const ENDPOINTS = 5;
/** Milliseconds between two questions. */
const PAUSE = 3000;

/** What the address says. */
interface Words {
  readonly find: string;
  readonly failing: boolean;
}

/** All backends with their endpoints: which get requests, how they are, and why others get none. */
export function Backends({ place: { query } }: PageProps): VNode {
  const words = wordsOf(query);
  const answer = useSignal<BackendsAnswer | undefined>(undefined);
  const problem = useSignal<AskError | undefined>(undefined);
  usePoll(
    JSON.stringify(words),
    PAUSE,
    async (signal) => {
      answer.value = await ask("/backends", { query: { ...words, limit: LIMIT }, signal });
    },
    (error) => {
      problem.value = error;
    },
  );
  // Each letter asks, but the history keeps only the place.
  const show = (next: Partial<Words>): void => location.replace(linkTo({ ...wordsOf(queryNow()), ...next }));
  return (
    <>
      <h1 class="hidden">Backends</h1>
      <search class="tools">
        <input
          type="search"
          aria-label="Search backends"
          placeholder="search: key, name, address"
          defaultValue={words.find}
          spellcheck={false}
          onInput={({ currentTarget: { value } }) => show({ find: value })}
        />
        <button type="button" aria-pressed={words.failing} onClick={() => show({ failing: !words.failing })}>
          Only failing
        </button>
      </search>
      <Problem problem={problem.value} />
      {answer.value === undefined ? null : <List answer={answer.value} />}
    </>
  );
}

function wordsOf(query: URLSearchParams): Words {
  return { find: query.get("find") ?? "", failing: query.get("failing") === "true" };
}

function linkTo({ find, failing }: Words): string {
  return hashOf("/backends", { find, failing: failing ? "true" : "" });
}

/** The page of one backend. */
function backendHash(key: string): string {
  return `#/backends/${encodeURIComponent(key)}`;
}

function List({ answer: { backends } }: { readonly answer: BackendsAnswer }): VNode {
  const { total, shown } = backends;
  return (
    <>
      <section class="grid" tabIndex={0} aria-label="Backends">
        <table class="mono">
          <thead>
            <tr>
              <th scope="col">backend</th>
              <EndpointHeadings />
            </tr>
          </thead>
          <tbody>{shown.flatMap(rowsOf)}</tbody>
        </table>
      </section>
      <p class="status quiet" style={{ margin: 0 }}>
        {shown.length < total
          ? `${shown.length} of ${counted(total, "backend")}: search for the others`
          : counted(total, "backend")}
      </p>
    </>
  );
}

function rowsOf(backend: BackendView): VNode[] {
  const { key, kind, endpoints } = backend;
  const shown = endpoints.shown.slice(0, ENDPOINTS);
  const others = endpoints.total - shown.length;
  const [first, ...more] = shown;
  return [
    first === undefined ? (
      <tr key={key}>
        <Name backend={backend} />
        <td class="quiet">{kind}</td>
        <td colSpan={ENDPOINT_COLUMNS - 1} />
      </tr>
    ) : (
      <tr key={key}>
        <Name backend={backend} />
        <EndpointCells endpoint={first} />
      </tr>
    ),
    ...more.map((endpoint, index) => (
      <tr key={`${key} ${index}`}>
        <td />
        <EndpointCells endpoint={endpoint} />
      </tr>
    )),
    ...(others === 0
      ? []
      : [
          <tr key={`${key} more`}>
            <td />
            <td colSpan={ENDPOINT_COLUMNS}>
              <a href={backendHash(key)}>and {counted(others, "more endpoint")}</a>
            </td>
          </tr>,
        ]),
  ];
}

function Name({ backend: { key, name, failing, endpoints } }: { readonly backend: BackendView }): VNode {
  return (
    <td title={name}>
      <a href={backendHash(key)}>{name}</a>
      {failing > 0 && endpoints.total > 1 ? (
        <span class="bad">
          {" "}
          {failing}/{endpoints.total} failing
        </span>
      ) : null}
    </td>
  );
}

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { RequestsQuery } from "../../src/admin/plane/answers.ts";
import { counted } from "../../src/base/counted.ts";
import { reachText } from "../../src/recorder/reach.ts";
import type { RecordAnswer, RequestRecord } from "../../src/recorder/records.ts";
import { keyOf } from "../../src/report/recorded.ts";
import { type AskError, ask } from "../ask.ts";
import { type FilterField, termsOf, withoutTerm, withValueOf } from "../filter.ts";
import type { PageProps } from "../page.ts";
import { ExpressionField } from "../parts/expression-field.tsx";
import { Problem } from "../parts/problem.tsx";
import { VirtualList } from "../parts/virtual-list.tsx";
import { hashOf, queryNow, requestHash } from "../place.ts";
import { usePoll } from "../poll.ts";
import { type Column, choices, columns, showColumn } from "../request-columns.ts";
import { EMPTY, following, MOST, newer, received } from "../request-list.ts";

const PAGE_OF_ROWS = 20;
/** Milliseconds between two questions. */
const PAUSE = 1000;

/** Recent and kept requests, live, filtered by what the address says. */
export function Requests({ place: { query } }: PageProps): VNode {
  const words = wordsOf(query);
  const key = JSON.stringify(words);
  const list = useSignal(EMPTY);
  const answer = useSignal<RecordAnswer | undefined>(undefined);
  const problem = useSignal<AskError | undefined>(undefined);
  const chosen = useSignal<string | undefined>(undefined);
  const focused = useSignal(false);
  const field = useRef<HTMLInputElement>(null);
  // Another filter is another list; what was chosen may be in it too.
  const present = useRef(key);
  useMemo(() => {
    present.current = key;
    list.value = { ...EMPTY, follows: list.peek().follows };
    answer.value = undefined;
  }, [key]);
  usePoll(
    key,
    PAUSE,
    async (signal) => {
      const since = answer.peek()?.until;
      const found = await ask("/requests", { query: { ...words, limit: MOST, since }, signal });
      // The filter may have changed meanwhile, a moment before this question is given up.
      if (present.current !== key) return;
      answer.value = found;
      list.value = received(list.peek(), found.records);
    },
    (error) => {
      problem.value = error;
    },
  );

  const { shown, follows } = list.value;
  const index = shown.findIndex((record) => keyOf(record) === chosen.value);
  const choose = (next: number): void => {
    const record = shown[Math.max(0, Math.min(shown.length - 1, next))];
    if (record === undefined) return;
    list.value = following(list.peek(), false);
    chosen.value = keyOf(record);
    focused.value = true;
  };
  const add = (field: FilterField, record: RequestRecord): void => {
    const where = withValueOf(words.where, field, record);
    if (where !== undefined) go({ where });
  };
  const addChosen = (field: FilterField): void => {
    const record = shown[index];
    if (record !== undefined) add(field, record);
  };
  const keys: Readonly<Record<string, () => void>> = {
    j: () => choose(index + 1),
    k: () => choose(index < 0 ? 0 : index - 1),
    ArrowDown: () => choose(index + 1),
    ArrowUp: () => choose(index < 0 ? 0 : index - 1),
    PageDown: () => choose(index + PAGE_OF_ROWS),
    PageUp: () => choose(index - PAGE_OF_ROWS),
    g: () => choose(0),
    G: () => choose(shown.length - 1),
    f: () => {
      list.value = following(list.peek(), !list.peek().follows);
    },
    "/": () => field.current?.focus(),
    s: () => addChosen("status"),
    m: () => addChosen("method"),
    r: () => addChosen("route"),
    b: () => addChosen("backend"),
  };
  // The newest handlers: they close over what is shown.
  const handlers = useRef(keys);
  handlers.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const handler = handlers.current[event.key];
      const isTyping = event.target instanceof HTMLInputElement;
      if (handler === undefined || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      handler();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);

  const go = (change: Readonly<Record<string, string>>): void => {
    location.hash = hashOf("/requests", { ...Object.fromEntries(queryNow()), ...change });
  };
  const shownColumns = columns.value;
  return (
    <>
      <h1 class="hidden">Requests</h1>
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault();
          go({ where: field.current?.value ?? "" });
        }}
      >
        <ExpressionField
          key={words.where}
          field={field}
          scope="record"
          value={words.where}
          label="Filter, a CEL expression"
          placeholder='filter: response.code >= 400 && route == "shop/admin"   ( / )'
          problemId={problem.value === undefined ? undefined : "requests-problem"}
        />
        <Switch name="Errors" on={words.errors} set={(on) => go({ errors: on ? "true" : "" })} />
        <Switch name="Slow" on={words.slow} set={(on) => go({ slow: on ? "true" : "" })} />
        <Switch
          name="Follow"
          on={follows}
          set={(on) => {
            list.value = following(list.peek(), on);
          }}
        />
        <ColumnChoice />
      </form>
      <Terms where={words.where} set={(where) => go({ where })} />
      <div id="requests-problem">
        <Problem problem={problem.value} />
        {problem.value === undefined || problem.value.passes || words.where === "" ? null : (
          <a href={hashOf("/expression", { expression: words.where, scope: "record" })}>
            write it with all variables and functions at hand
          </a>
        )}
      </div>
      <div class="columns" aria-hidden="true">
        {shownColumns.map(({ name, heading }) => (
          <span key={name} class={`column-${name}`}>
            {heading}
          </span>
        ))}
      </div>
      <VirtualList
        label="Requests"
        count={shown.length}
        chosen={index}
        focused={focused.value}
        row={(at, top) => (
          <Row key={at} record={shown[at]} top={top} chosen={at === index} columns={shownColumns} add={add} />
        )}
      />
      <div class="status quiet">
        {shown.length === 0 ? nothingFound(answer.value) : counted(shown.length, "request")}
        {follows ? " · following the newest" : ` · standing still, ${newer(list.value)} newer; f follows`}
        {" · j k move, Enter opens, / filters; s m r b filter by its status, method, route, backend"}
      </div>
    </>
  );
}

function wordsOf(query: URLSearchParams): Required<Pick<RequestsQuery, "errors" | "slow">> & { where: string } {
  const { where = "", errors, slow } = Object.fromEntries(query);
  return { where, errors: errors === "true", slow: slow === "true" };
}

/** Why the list is empty: how far back records reach. */
function nothingFound(answer: RecordAnswer | undefined): string {
  return answer === undefined ? "" : `no request found; ${reachText([answer])}`;
}

interface TermsProps {
  readonly where: string;
  readonly set: (where: string) => void;
}

/** What the filter asks for, each condition with a button that removes it. */
function Terms({ where, set }: TermsProps): VNode | null {
  const terms = termsOf(where);
  if (terms.length === 0) return null;
  return (
    <ul class="terms" aria-label="Conditions of the filter">
      {terms.map((term) => (
        <li key={term.text}>
          <button
            type="button"
            title={`Remove ${term.text}`}
            aria-label={`Remove the condition ${term.name}`}
            onClick={() => set(withoutTerm(where, term))}
          >
            {term.name} <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Which columns are shown, in a menu. */
function ColumnChoice(): VNode {
  return (
    <details class="menu">
      <summary>Columns</summary>
      <fieldset>
        <legend class="hidden">Columns</legend>
        {choices.value.map(({ name, heading }) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={columns.value.some((each) => each.name === name)}
              onChange={({ currentTarget: { checked } }) => showColumn(name, checked)}
            />
            {heading}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

interface SwitchProps {
  readonly name: string;
  readonly on: boolean;
  readonly set: (on: boolean) => void;
}

function Switch({ name, on, set }: SwitchProps): VNode {
  return (
    <button type="button" aria-pressed={on} onClick={() => set(!on)}>
      {name}
    </button>
  );
}

interface RowProps {
  readonly record: RequestRecord | undefined;
  readonly top: number;
  readonly chosen: boolean;
  readonly columns: readonly Column[];
  /** Adds to the filter that a field is as in the record. */
  readonly add: (field: FilterField, record: RequestRecord) => void;
}

/** One request: a link to what happened to it, with values that can become conditions of the filter. */
function Row({ record, top, chosen, columns, add }: RowProps): VNode | null {
  if (record === undefined) return null;
  const cell = ({ name, text, tone, filter }: Column): VNode | string => {
    const value = text(record);
    if (name === "url")
      return (
        <a href={requestHash(keyOf(record))} tabIndex={chosen ? 0 : -1} data-chosen={chosen || undefined} title={value}>
          {value}
        </a>
      );
    if (filter === undefined || value === "") return value;
    return (
      <button
        type="button"
        class={tone?.(record)}
        tabIndex={-1}
        title={`Only ${filter} ${value}`}
        onClick={() => add(filter, record)}
      >
        {value}
      </button>
    );
  };
  return (
    <li>
      <div class={chosen ? "row chosen" : "row"} style={{ top: `${top}px` }}>
        {columns.map((column) => (
          <span key={column.name} class={`column-${column.name}`}>
            {cell(column)}
          </span>
        ))}
      </div>
    </li>
  );
}

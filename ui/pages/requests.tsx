import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { RequestsQuery } from "../../src/admin/plane/answers.ts";
import { counted } from "../../src/base/counted.ts";
import type { RequestRecord } from "../../src/recorder/records.ts";
import { decidedBy, durationText, methodOf, statusOf, urlOf } from "../../src/report/recorded.ts";
import { type AskError, ask } from "../ask.ts";
import { Problem } from "../parts/problem.tsx";
import { VirtualList } from "../parts/virtual-list.tsx";
import { toneOf } from "../parts/words.ts";
import { hashOf, requestHash } from "../place.ts";
import { usePoll } from "../poll.ts";
import { EMPTY, following, keyOf, MOST, newer, received } from "../request-list.ts";
import type { PageProps } from "./pages.ts";

/** Seconds by which questions overlap: a record is written a moment after its request has ended. */
const OVERLAP = 3;
const PAGE_OF_ROWS = 20;
/** Milliseconds between two questions. */
const PAUSE = 1000;

/** Recent and kept requests, live, filtered by what the address says. */
export function Requests({ place: { query } }: PageProps): VNode {
  const words = wordsOf(query);
  const key = JSON.stringify(words);
  const list = useSignal(EMPTY);
  const problem = useSignal<AskError | undefined>(undefined);
  const chosen = useSignal<string | undefined>(undefined);
  const focused = useSignal(false);
  const field = useRef<HTMLInputElement>(null);
  const answered = useRef<number | undefined>(undefined);
  // Another filter is another list; what was chosen may be in it too.
  useMemo(() => {
    list.value = { ...EMPTY, follows: list.peek().follows };
    answered.current = undefined;
  }, [key]);
  usePoll(
    key,
    PAUSE,
    async (signal) => {
      const began = Date.now();
      const since = answered.current;
      const last = since === undefined ? undefined : `${Math.ceil((began - since) / 1000) + OVERLAP}s`;
      const { records } = await ask("/requests", { query: { ...words, limit: MOST, last }, signal });
      answered.current = began;
      list.value = received(list.peek(), records);
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
    location.hash = hashOf("/requests", { ...Object.fromEntries(query), ...change });
  };
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
        <input
          key={words.where}
          ref={field}
          type="search"
          aria-label="Filter, a CEL expression"
          placeholder='filter: response.code >= 400 && route == "shop/admin"   ( / )'
          defaultValue={words.where}
          spellcheck={false}
          onKeyDown={({ key, currentTarget }) => key === "Escape" && currentTarget.blur()}
        />
        <Switch name="Errors" on={words.errors} set={(on) => go({ errors: on ? "true" : "" })} />
        <Switch name="Slow" on={words.slow} set={(on) => go({ slow: on ? "true" : "" })} />
        {words.route === "" ? null : (
          <button type="button" onClick={() => go({ route: "" })} aria-label={`Remove the filter route ${words.route}`}>
            route {words.route} ×
          </button>
        )}
        <Switch
          name="Follow"
          on={follows}
          set={(on) => {
            list.value = following(list.peek(), on);
          }}
        />
      </form>
      <Problem problem={problem.value} />
      <div class="columns" aria-hidden="true">
        <span>time</span>
        <span class="medium">method</span>
        <span>host and path</span>
        <span class="number">status</span>
        <span class="number">took</span>
        <span class="wide">route</span>
        <span class="wide">endpoint</span>
        <span class="medium">decided by</span>
      </div>
      <VirtualList
        label="Requests"
        count={shown.length}
        chosen={index}
        focused={focused.value}
        row={(at, top) => <Row key={at} record={shown[at]} top={top} chosen={at === index} />}
      />
      <div class="status quiet">
        {shown.length === 0 ? "no requests yet" : counted(shown.length, "request")}
        {follows ? " · following the newest" : ` · standing still, ${newer(list.value)} newer; f follows`}
        {" · j k move, Enter opens, / filters"}
      </div>
    </>
  );
}

function wordsOf(query: URLSearchParams): Required<Omit<RequestsQuery, "last" | "limit">> {
  const { where = "", route = "", errors, slow } = Object.fromEntries(query);
  return { where, route, errors: errors === "true", slow: slow === "true" };
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
}

/** One request, as a link to what happened to it. */
function Row({ record, top, chosen }: RowProps): VNode | null {
  if (record === undefined) return null;
  const { time, duration, route = "", endpoint = "" } = record;
  return (
    <li>
      <a
        class={chosen ? "row chosen" : "row"}
        href={requestHash(keyOf(record))}
        style={{ top: `${top}px` }}
        tabIndex={chosen ? 0 : -1}
        data-chosen={chosen || undefined}
      >
        <span class="quiet time">{time.slice(11, 23)}</span>
        <span class="medium">{methodOf(record)}</span>
        <span title={urlOf(record)}>{urlOf(record)}</span>
        <span class={`number ${toneOf(record)}`}>{statusOf(record)}</span>
        <span class="number">{durationText(duration)}</span>
        <span class="wide">{route}</span>
        <span class="wide">{endpoint}</span>
        <span class="medium">{decidedBy(record)}</span>
      </a>
    </li>
  );
}

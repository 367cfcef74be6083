import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type Row, rowOf } from "../../src/report/rows.ts";
import { type AskError, lasting, openTrace } from "../ask.ts";
import type { PageProps } from "../page.ts";
import { ExpressionField } from "../parts/expression-field.tsx";
import { Problem } from "../parts/problem.tsx";
import { TraceHeading, TraceView } from "../parts/trace-view.tsx";
import { hashOf, requestHash } from "../place.ts";
import { TraceBodies } from "../trace-bodies.ts";
import { remember, requestIdOf } from "../traces.ts";

/** How much of each body a page asks for: more than it shows of one. */
const BODIES = "128KiB";
/** True for the next request, whatever it is. */
const ANY = "true";

/** A trace that this page has opened. */
interface Tracing {
  readonly state: "asking" | "waiting" | "tracing" | "ended" | "stopped";
  readonly rows: readonly Row[];
  readonly bodies: TraceBodies;
  readonly problem?: AskError;
}

/** Which request to trace: the expression must be true for it, and it must get the route. Empty: any. */
interface Filter {
  readonly expression: string;
  readonly route: string;
}

/** Traces the next request that fits the filter in the address, and shows it while it happens. */
export function Trace({ place: { query } }: PageProps): VNode {
  const filter: Filter = { expression: query.get("expression") ?? "", route: query.get("route") ?? "" };
  const { expression, route } = filter;
  const tracing = useSignal<Tracing | undefined>(undefined);
  /** Counts what this page has traced, so that one expression can be traced again. */
  const turn = useSignal(0);
  const field = useRef<HTMLInputElement>(null);
  const routeField = useRef<HTMLInputElement>(null);
  const stop = useRef<() => void>(() => {});
  useEffect(() => {
    tracing.value = undefined;
    if (expression === "" && route === "") return;
    const aborting = new AbortController();
    stop.current = () => aborting.abort();
    void trace(filter, aborting.signal, (next) => {
      tracing.value = next;
    });
    return () => aborting.abort();
  }, [expression, route, turn.value]);

  const { state, rows = [], bodies, problem } = tracing.value ?? {};
  const recorded = state === "ended" ? requestIdOf(rows) : undefined;
  const isOpen = state === "asking" || state === "waiting" || state === "tracing";
  return (
    <>
      <h1 class="hidden">Trace</h1>
      <form
        class="tools trace-tools"
        onSubmit={(event) => {
          event.preventDefault();
          const nextRoute = routeField.current?.value.trim() ?? "";
          const next = field.current?.value.trim() || (nextRoute === "" ? ANY : "");
          if (next === expression && nextRoute === route) turn.value++;
          else location.hash = hashOf("/trace", { expression: next, route: nextRoute });
        }}
      >
        <ExpressionField
          key={expression}
          field={field}
          scope="arrival"
          value={expression}
          label="Trace the next request for which this CEL expression is true"
          placeholder='the next request, or the next for which this is true: request.path == "/cart"'
          problemId={problem === undefined ? undefined : "trace-problem"}
        />
        <input
          key={`route ${route}`}
          ref={routeField}
          class="route"
          aria-label="Only if this route is chosen"
          placeholder="any route"
          defaultValue={route}
        />
        {isOpen ? (
          <button type="button" onClick={() => stop.current()}>
            Stop
          </button>
        ) : null}
        <button type="submit">{state === undefined ? "Trace the next one" : "Trace another one"}</button>
      </form>
      <p class="quiet" role="status">
        {state === undefined ? INTRODUCTION : STATES[state](rows.length, filter)}{" "}
        {recorded === undefined ? null : <a href={requestHash(recorded)}>What is recorded of it</a>}
      </p>
      <div id="trace-problem">
        <Problem problem={problem} />
      </div>
      {bodies === undefined || rows.length === 0 ? null : (
        <>
          <TraceHeading rows={rows} />
          <TraceView rows={rows} reading={bodies.reading} />
        </>
      )}
    </>
  );
}

const INTRODUCTION =
  "A trace shows every step of one request that has yet to come: what the gateway saw, what each policy changed, and how long each step took. Secrets are redacted.";
const STATES: Readonly<Record<Tracing["state"], (events: number, filter: Filter) => string>> = {
  asking: () => "Asking the gateway.",
  waiting: (_, { expression, route }) => {
    const of = route === "" ? "" : ` of the route ${route}`;
    const when = expression === "" ? "" : " for which the expression is true";
    return `Waiting for the next request${of}${when}.`;
  },
  tracing: (events) => `The request is on its way; ${events} events so far.`,
  ended: (events) => `${events} events.`,
  stopped: (events) => (events === 0 ? "Stopped before a request came." : `Stopped after ${events} events.`),
};

/** Traces one request and shows each change. */
async function trace(filter: Filter, signal: AbortSignal, show: (tracing: Tracing) => void): Promise<void> {
  const bodies = new TraceBodies();
  let now: Tracing = { state: "asking", rows: [], bodies };
  const change = (next: Partial<Tracing>): void => {
    now = { ...now, ...next };
    show(now);
  };
  signal.addEventListener("abort", () => change({ state: "stopped" }));
  show(now);
  try {
    const events = await openTrace({ ...filter, bodies: BODIES }, signal);
    change({ state: "waiting" });
    for await (const event of events) {
      const last = now.rows.at(-1);
      const row = rowOf(event, last);
      await bodies.add(row);
      if (signal.aborted) return;
      change({ state: "tracing", rows: [...withoutProgress(now.rows), row] });
    }
    change({ state: "ended" });
    remember(now);
  } catch (error) {
    if (signal.aborted) return;
    change({ state: "stopped", problem: lasting(error) });
  }
}

/** A stream tells its progress every second for as long as it lasts: only the latest counts. */
function withoutProgress(rows: readonly Row[]): readonly Row[] {
  return rows.at(-1)?.message.type === "streamProgress" ? rows.slice(0, -1) : rows;
}

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { counted } from "../../src/base/counted.ts";
import { fieldsOf } from "../../src/base/fields.ts";
import { type DetailLine, detailOf, type Reading, tellingMode } from "../../src/report/detail.ts";
import { type Attempt, attemptsOf, timeOf } from "../../src/report/exchange.ts";
import { curlCommand } from "../../src/report/export/curl.ts";
import { outcomeLine, outcomeOf } from "../../src/report/outcome.ts";
import { changesNothing, type Row } from "../../src/report/rows.ts";
import { type Span, spansOf } from "../../src/report/spans.ts";
import { treeLines } from "../../src/report/step-lines.ts";
import { textOf } from "../../src/report/summaries.ts";
import { duration, milliseconds } from "../../src/report/text.ts";
import { Copy } from "./copy.tsx";
import { download, SaveAs } from "./save.tsx";
import { Tree } from "./step-tree.tsx";

const TONES = { error: "bad", warn: "warn", success: "good", info: "" } as const;

/** What the colors of the timeline mean. */
const SPANS: Readonly<Record<Span["name"], string>> = {
  step: "in the gateway",
  dns: "name resolution",
  connect: "connecting",
  tls: "TLS",
  call: "waiting for the backend",
};

interface TraceViewProps {
  /** At least one. */
  readonly rows: readonly Row[];
  readonly reading: Reading;
}

/** How the request of a trace has ended so far, and why. */
export function TraceHeading({ rows }: Pick<TraceViewProps, "rows">): VNode {
  const outcome = outcomeOf(rows);
  return <h1 class={TONES[outcome.severity]}>{outcomeLine(outcome)}</h1>;
}

/** A trace so far: its attempts, its decisions, and its events on a timeline with what each changed. */
export function TraceView({ rows, reading }: TraceViewProps): VNode {
  return (
    <article>
      <Exports rows={rows} />
      <Attempts attempts={attemptsOf(rows)} />
      <h2>What decided</h2>
      <Tree lines={treeLines(rows.map(({ event }) => event))} />
      <Events rows={rows} decider={outcomeOf(rows).decider} reading={reading} />
    </article>
  );
}

/** The request as a command, and the trace as a file that `tgctl` shows and converts. */
function Exports({ rows }: { readonly rows: readonly Row[] }): VNode {
  const curl = curlCommand(rows);
  const events = rows.map(({ event }) => event);
  const save = (): void => {
    const lines = events.map((event) => `${JSON.stringify(event)}\n`);
    download("trace.jsonl", lines);
  };
  return (
    <p>
      {curl === undefined ? null : <Copy name="Copy as curl" text={curl} />}{" "}
      <button type="button" onClick={save}>
        Save as trace.jsonl
      </button>{" "}
      <SaveAs what={{ events }} />
      <span class="quiet">
        <code>tgctl trace open trace.jsonl</code> shows it
      </span>
    </p>
  );
}

/** What each attempt at a backend took and how it ended, side by side. Nothing for a single one, which the events show. */
function Attempts({ attempts }: { readonly attempts: readonly Attempt[] }): VNode | null {
  if (attempts.length < 2) return null;
  const rows: readonly (readonly [string, (attempt: Attempt) => string])[] = [
    ["endpoint", ({ target }) => target],
    ["began after", ({ result, start }) => duration(result?.start ?? start)],
    [
      "took",
      ({ result }) => (result?.start === undefined ? "" : duration((result.end ?? result.start) - result.start)),
    ],
    ...(["dns", "connect", "tls", "firstByte"] as const).map((part) => [PARTS[part], partText(part)] as const),
    ["status", ({ result }) => textOf(result?.message.status)],
    ["error", ({ result }) => textOf(result?.message.error)],
    ["then", ({ retry }) => textOf(fieldsOf(retry?.message.result).details)],
  ];
  return (
    <section>
      <h2>{counted(attempts.length, "attempt")}</h2>
      <section class="scroll" tabIndex={0} aria-label="Attempts">
        <table class="attempts mono">
          <thead>
            <tr>
              <td />
              {attempts.map(({ number, result }) => (
                <th key={number} scope="col" class={result === undefined ? "" : TONES[result.severity]}>
                  {number}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, text]) =>
              attempts.every((attempt) => text(attempt) === "") ? null : (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {attempts.map((attempt) => (
                    <td key={attempt.number}>{text(attempt)}</td>
                  ))}
                </tr>
              ),
            )}
          </tbody>
        </table>
      </section>
    </section>
  );
}

const PARTS = { dns: SPANS.dns, connect: SPANS.connect, tls: SPANS.tls, firstByte: "until the head" } as const;

function partText(part: keyof typeof PARTS): (attempt: Attempt) => string {
  return ({ result }) => {
    const time = result === undefined ? undefined : timeOf(result, part);
    return time === undefined ? "" : duration(Math.round(time));
  };
}

interface EventsProps extends TraceViewProps {
  readonly decider: Row | undefined;
}

/** All events with their times; each opens to what it changed, or what it holds. */
function Events({ rows, decider, reading }: EventsProps): VNode {
  const [all, setAll] = useState(false);
  const shown = all ? rows : rows.filter((row) => !changesNothing(row));
  // Times never decrease.
  const total = rows.findLast(({ end }) => end !== undefined)?.end || 1;
  return (
    <section>
      <h2>Events</h2>
      <p class="quiet keys">
        {Object.entries(SPANS).map(([name, text]) => (
          <span key={name}>
            <span class={`key ${name}`} /> {text}
          </span>
        ))}
        <label>
          <input type="checkbox" checked={all} onChange={({ currentTarget: { checked } }) => setAll(checked)} /> also
          those that change nothing
        </label>
      </p>
      <ol class="events">
        {shown.map((row) => (
          <Event key={row.number} row={row} total={total} decides={row === decider} reading={reading} />
        ))}
      </ol>
    </section>
  );
}

interface EventProps {
  readonly row: Row;
  /** Microseconds of the whole timeline. */
  readonly total: number;
  readonly decides: boolean;
  readonly reading: Reading;
}

function Event({ row, total, decides, reading }: EventProps): VNode {
  const [open, setOpen] = useState(false);
  return (
    <li class={decides ? "decides" : ""}>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <span class="number quiet">{milliseconds(row.end)}</span>
          <span class={TONES[row.severity]}>{row.label}</span>
          <span class={`about ${TONES[row.severity]}`}>{row.summary}</span>
          <Timeline spans={spansOf(row)} total={total} />
        </summary>
        {open ? <Details row={row} reading={reading} /> : null}
      </details>
    </li>
  );
}

/** Width of the timeline, in units of the drawing. */
const WIDTH = 1000;

function Timeline({ spans, total }: { readonly spans: readonly Span[]; readonly total: number }): VNode {
  const text = spans.map(({ name, start, end }) => `${SPANS[name]} ${duration(Math.round(end - start))}`).join(", ");
  return (
    <svg viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" role="img" aria-label={text}>
      <title>{text}</title>
      {spans.map(({ name, start, end }) => (
        <rect
          key={name}
          class={name}
          x={Math.min(WIDTH - 2, (start / total) * WIDTH)}
          width={Math.max(2, ((end - start) / total) * WIDTH)}
          height="10"
        />
      ))}
    </svg>
  );
}

function Details({ row, reading }: { readonly row: Row; readonly reading: Reading }): VNode {
  const { title, lines } = detailOf(row, tellingMode(row), reading);
  return (
    <figure>
      <figcaption class="quiet">{title}</figcaption>
      <pre tabIndex={0}>{lines.map(line)}</pre>
    </figure>
  );
}

function line({ text, sign, note }: DetailLine, index: number): VNode {
  if (sign === "+") return <ins key={index}>{`${text}\n`}</ins>;
  if (sign === "-") return <del key={index}>{`${text}\n`}</del>;
  return (
    <span key={index} class={note === true ? "quiet" : ""}>
      {`${text}\n`}
    </span>
  );
}

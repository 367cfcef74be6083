/**
 * A trace or a recorded request as a self-contained page: no script, no other file, no network. Everything about the request is text on it, and
 * its content security policy forbids loading or running anything.
 */
import { createHash } from "node:crypto";
import { packageVersion } from "../../base/build-info.ts";
import { counted } from "../../base/counted.ts";
import { escapeHtml } from "../../base/markup.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import type { Explanation } from "../../rehearsal/explanation.ts";
import { type Detail, detailOf, tellingMode } from "../detail.ts";
import { READINGS } from "../formats.ts";
import { outcomeOf } from "../outcome.ts";
import { decidedBy, durationText, keyOf, methodOf, statusOf, urlOf } from "../recorded.ts";
import type { Row, Severity } from "../rows.ts";
import { type Span, spansOf } from "../spans.ts";
import { SIGNS, type StepLine, linesOf as stepLinesOf, treeLines } from "../step-lines.ts";
import { duration, harmless, milliseconds } from "../text.ts";
import { redactedIn } from "../trace-file.ts";
import { PAGE_STYLE, TREE_LEVELS } from "./html-style.ts";

/** Largest page, in bytes: small enough for a mail or an issue. */
const MAX_PAGE = 300 * 1024;
/** Characters of the details of an event, unless the page becomes too large. */
const MAX_DETAIL = 32 * 1024;

/**
 * The page, at most 300 KiB. It leaves out long details and the events in the middle of a large trace, and says so.
 */
export function htmlPage(rows: readonly Row[]): string {
  const known = new Map<Row, Detail>();
  const content: Content = {
    rows,
    outcome: outcomeOf(rows),
    tree: treeLines(rows.map(({ event }) => event)),
    detailOf(row) {
      const detail = known.get(row) ?? detailOf(row, tellingMode(row), READINGS.yaml);
      known.set(row, detail);
      return detail;
    },
  };
  for (let most = MAX_DETAIL; ; most = Math.floor(most / 2)) {
    const page = pageOf(content, most);
    if (Buffer.byteLength(page) <= MAX_PAGE) return page;
  }
}

/** What is on the page, before anything is left out. */
interface Content {
  readonly rows: readonly Row[];
  readonly outcome: ReturnType<typeof outcomeOf>;
  readonly tree: readonly StepLine[];
  readonly detailOf: (row: Row) => Detail;
}

function pageOf(content: Content, most: number): string {
  const { rows, outcome } = content;
  const { request, status, duration: took, route, why, severity } = outcome;
  const ended = cut(status || "no response", TITLE);
  const facts: readonly (readonly [string, string])[] = [
    ["duration", took],
    ["route", route],
    ["why", why],
    ["attempts", attempts(rows)],
    ["redacted", redactedIn(rows.map(({ event }) => event))],
  ];
  return documentOf({
    request,
    ended,
    severity,
    facts,
    main: `<section>
<h2>Decisions</h2>
${tree(content.tree, most)}
</section>
<section>
<h2>Events</h2>
<p class="note">Open an event to see what it changed. Bars: <span class="key step"></span> in the gateway,
<span class="key dns"></span> name resolution, <span class="key connect"></span> connecting, <span class="key tls"></span> TLS,
<span class="key call"></span> waiting for the backend. Times are milliseconds since the request began.</p>
${events(content, most)}
</section>`,
  });
}

/** The page of a recorded request: its record, and what decided. */
export function recordPage(record: RequestRecord, { outcomes, generation }: Explanation): string {
  const { time, duration, route, id, listener, backend, endpoint, attempts, status, error } = record;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["began", time],
    ["duration", durationText(duration)],
    ["route", route],
    ["why", decidedBy(record)],
    ["id", id],
    ["record", keyOf(record)],
    ["listener", listener],
    ["backend", backend],
    ["endpoint", endpoint],
    ["attempts", attempts?.toString()],
  ];
  const explained =
    record.generation === generation
      ? `Recorded and explained with configuration ${generation}`
      : `Recorded with configuration ${record.generation}, explained with ${generation}`;
  const trees = outcomes.map(({ steps }) => tree(stepLinesOf(steps), MAX_DETAIL));
  return documentOf({
    request: `${methodOf(record)} ${urlOf(record)}`,
    ended: statusOf(record),
    severity: error !== undefined || status >= 500 || status === 0 ? "error" : status >= 400 ? "warn" : "success",
    facts: facts.map(([name, text = ""]) => [name, text]),
    main: `<section>
<h2>Decisions</h2>
<p class="note">${explained}. Records have no fields, query or bodies.</p>
${trees.join("\n")}
</section>`,
  });
}

interface Document {
  readonly request: string;
  /** The status, or `no response`. */
  readonly ended: string;
  readonly severity: Severity;
  /** Facts without a text are left out. */
  readonly facts: readonly (readonly [name: string, text: string])[];
  /** HTML. */
  readonly main: string;
}

function documentOf({ request, ended, severity, facts, main }: Document): string {
  const digest = createHash("sha256").update(PAGE_STYLE).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'`;
  const title = html(cut(`${request} → ${ended}`, TITLE));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="tracegate ${packageVersion()}">
<title>${title}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<header>
<h1 class="${severity}">${html(cut(request, TITLE))} <span>→ ${html(ended)}</span></h1>
<dl>${facts
    .filter(([, text]) => text !== "")
    .map(([name, text]) => `<div><dt>${name}</dt><dd>${html(cut(text, TITLE))}</dd></div>`)
    .join("")}</dl>
</header>
<main>
${main}
</main>
</body>
</html>
`;
}

/** Most characters of a line and of a name, so that no single part of a trace makes the page too large. */
const TITLE = 2000;
const LABEL = 200;

function attempts(rows: readonly Row[]): string {
  const count = rows.filter(
    ({ message, event }) => message.type === "backendCallStart" && event.scope === undefined,
  ).length;
  return count > 1 ? String(count) : "";
}

function tree(lines: readonly StepLine[], most: number): string {
  const shown = lines.slice(0, most / 32);
  const items = shown.map(({ depth, result, text, place }) => {
    const sign = result === undefined ? "" : `<b>${SIGNS[result]}</b> `;
    const where = place === undefined ? "" : ` <small>${html(cut(place, LABEL))}</small>`;
    const level = Math.min(depth, TREE_LEVELS);
    return `<li class="level${level} ${result ?? "more"}">${sign}${html(cut(text, most))}${where}</li>`;
  });
  if (lines.length > shown.length) items.push(leftOut(counted(lines.length - shown.length, "line")));
  return items.length === 0
    ? '<p class="note">Nothing was decided.</p>'
    : `<ul class="tree">\n${items.join("\n")}\n</ul>`;
}

function leftOut(what: string): string {
  return `<li class="note">${what} left out; the trace file has everything</li>`;
}

function events({ rows, outcome, detailOf }: Content, most: number): string {
  // Times never decrease.
  const total = rows.findLast(({ end }) => end !== undefined)?.end || 1;
  // The beginning and the end of a trace say the most.
  const half = Math.max(4, Math.floor(most / 128));
  const omitted = Math.max(0, rows.length - 2 * half);
  const items: string[] = [];
  for (const [index, row] of rows.entries()) {
    if (omitted > 0 && index === half) items.push(leftOut(counted(omitted, "event")));
    if (omitted === 0 || index < half || index >= half + omitted) {
      const summary = summaryOf(row, index, row === outcome.decider, bar(row, total));
      const detail = detailOf(row);
      items.push(
        `<li><details>${summary}<h3>${html(cut(detail.title, LABEL))}</h3>${linesOf(detail, most)}</details></li>`,
      );
    }
  }
  return `<ol class="events">\n${items.join("\n")}\n</ol>`;
}

function summaryOf(row: Row, index: number, decides: boolean, time: string): string {
  const columns = [
    `<span class="number">${index + 1}</span>`,
    `<span class="time">${milliseconds(row.end)}</span>`,
    `<span class="label">${html(cut(row.label, LABEL))}</span>`,
    `<span class="summary">${html(cut(row.summary, TITLE))}</span>`,
    time,
  ];
  return `<summary class="${row.severity}${decides ? " decider" : ""}">${columns.join("")}</summary>`;
}

/** The bar of an event on the timeline: a call with its parts, or the time since the previous event. */
function bar(row: Row, total: number): string {
  const parts = spansOf(row);
  if (parts.length === 0) return "<span></span>";
  const rects = parts.map(({ name, start: from, end: to }) => {
    const title = `${name === "step" ? "gateway" : name} ${duration(Math.round(to - from))}`;
    const x = Math.min(WIDTH - 2, (from / total) * WIDTH);
    const width = Math.max(2, ((to - from) / total) * WIDTH);
    return `<rect class="${name}" x="${x.toFixed(1)}" width="${width.toFixed(1)}" height="10"><title>${title}</title></rect>`;
  });
  return `<svg viewBox="0 0 ${WIDTH} 10" preserveAspectRatio="none" role="img" aria-label="${ariaOf(parts)}">${rects.join("")}</svg>`;
}

/** Width of the whole trace, in units of the drawing. */
const WIDTH = 1000;

function ariaOf(parts: readonly Span[]): string {
  return parts.map(({ name, start, end }) => `${name} ${duration(Math.round(end - start))}`).join(", ");
}

function linesOf({ lines: all }: Detail, most: number): string {
  const texts: string[] = [];
  let left = most;
  for (const { text, sign, note } of all) {
    if (left <= 0) break;
    const shown = html(cut(text, left));
    left -= text.length + 1;
    if (sign !== undefined) texts.push(sign === "+" ? `<ins>${shown}</ins>` : `<del>${shown}</del>`);
    else texts.push(note ? `<i>${shown}</i>` : shown);
  }
  if (texts.length < all.length)
    texts.push(`<i>${counted(all.length - texts.length, "line")} left out; the trace file has everything</i>`);
  return `<pre>${texts.join("\n")}</pre>`;
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length} characters)`;
}

/** Text for an element or an attribute, without characters that would reorder or hide other text. */
function html(text: string): string {
  return escapeHtml(harmless(text));
}

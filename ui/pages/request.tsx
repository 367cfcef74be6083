import type { VNode } from "preact";
import type { RequestRecord } from "../../src/recorder/records.ts";
import type { ExplainedOutcome } from "../../src/rehearsal/explanation.ts";
import { givenText } from "../../src/report/given-text.ts";
import { decidedBy, durationText, keyOf, methodOf, statusOf, urlOf } from "../../src/report/recorded.ts";
import { useAnswer } from "../answer.ts";
import { curlOf } from "../curl.ts";
import { withTerm } from "../filter.ts";
import { alikeText, MOST_ALIKE, traceHash, whereLike } from "../like.ts";
import type { PageProps } from "../page.ts";
import { Copy } from "../parts/copy.tsx";
import { Problem } from "../parts/problem.tsx";
import { SaveAs } from "../parts/save.tsx";
import { StepTree } from "../parts/step-tree.tsx";
import { TraceView } from "../parts/trace-view.tsx";
import { toneOf } from "../parts/words.ts";
import { hashOf } from "../place.ts";
import { traceOf } from "../traces.ts";

/** What happened to one request, and what decided: the gateway explains its record. */
export function Request({ rest: id }: PageProps): VNode {
  const { answer, problem } = useAnswer("/explain", { body: { id } }, id);
  if (problem !== undefined)
    return (
      <>
        <h1>Request {id}</h1>
        <Problem problem={problem} />
        <p>
          An id is that of a request, of its trace or of its record. Failed and slow requests are remembered longest;{" "}
          <code>config.recorder</code> says how many.
        </p>
        <p class="links">
          <a href={hashOf("/requests")}>All requests</a>
          <a href={hashOf("/docs/recorder")}>What is recorded</a>
          <a href={hashOf("/trace")}>Trace the next request</a>
        </p>
      </>
    );
  const { record, outcomes, generation, alike = 1, omitted = 0 } = answer ?? { outcomes: [], generation: null };
  if (record === undefined) return <h1 aria-busy="true">Request {id}</h1>;
  const trace = traceOf(record);
  return (
    <article>
      <Headline record={record} canAsk={answer?.question !== undefined} isTraced={trace !== undefined} />
      <Times record={record} />
      {alike > 1 ? (
        <p>
          {alike} records have this id; this is the newest. <code>tgctl recent --id</code> lists all.
        </p>
      ) : null}
      {record.generation === generation ? null : (
        <p>
          Configuration {record.generation} was in effect then; it is explained with {generation}, which is in effect
          now.
        </p>
      )}
      {trace !== undefined ? (
        <TraceView rows={trace.rows} reading={trace.bodies.reading} />
      ) : (
        <>
          {omitted > 0 ? <p>What is not recorded leaves more ways open than are shown.</p> : null}
          {outcomes.map((outcome, index) => (
            <Outcome key={index} outcome={outcome} />
          ))}
          <Untraced record={record} />
        </>
      )}
      <h2>Record</h2>
      <Facts record={record} />
    </article>
  );
}

interface HeadlineProps {
  readonly record: RequestRecord;
  /** The gateway can say what would happen to such a request. */
  readonly canAsk: boolean;
  /** The page shows its trace, and can save that, which has more than a record. */
  readonly isTraced: boolean;
}

/** What happened in one sentence: the request, how it ended, and what decided. */
function Headline({ record, canAsk, isTraced }: HeadlineProps): VNode {
  const { route, duration } = record;
  const decided = decidedBy(record);
  const curl = curlOf(record);
  const whatIf = canAsk ? hashOf("/explain", { id: keyOf(record) }) : undefined;
  const ofRoute = traceHash(record, true);
  return (
    <>
      <h1>
        <span class={toneOf(record)}>{statusOf(record)}</span> in {durationText(duration)}
        {route === undefined ? null : (
          <>
            {" · route "}
            <a href={hashOf("/requests", { where: withTerm("", "route", route) })}>{route}</a>
          </>
        )}
        {decided === "" ? "" : ` · ${decided}`}
      </h1>
      <p class="mono">
        {methodOf(record)} {urlOf(record)}
      </p>
      <p>
        <Copy name="Copy link" text={location.href} />{" "}
        {isTraced ? null : (
          <>
            {curl === undefined ? null : <Copy name="Copy as curl" text={curl} />}{" "}
            <SaveAs what={{ id: keyOf(record) }} />
          </>
        )}
      </p>
      <p class="links">
        {whatIf === undefined ? null : <a href={whatIf}>What if…</a>}
        <TraceNext record={record} />
        {ofRoute === undefined ? null : <a href={ofRoute}>Trace the next of its route</a>}
        <Alike record={record} />
      </p>
    </>
  );
}

/** A link to a trace of the next request like this one; nothing for connections. */
function TraceNext({ record }: { readonly record: RequestRecord }): VNode | null {
  const hash = traceHash(record);
  return hash === undefined ? null : <a href={hash}>Trace the next like this</a>;
}

/** What only a trace shows, with a link that takes one. */
function Untraced({ record }: { readonly record: RequestRecord }): VNode | null {
  const { attempts = 0 } = record;
  if (traceHash(record) === undefined) return null;
  const each = attempts > 1 ? `, nor each of the ${attempts} attempts` : "";
  return (
    <p class="quiet">
      A record has no header fields and bodies, nor what each step changed{each}. A trace shows all of it:{" "}
      <TraceNext record={record} />
    </p>
  );
}

/** How often it happens: a link to all requests that ended like this one. */
function Alike({ record }: { readonly record: RequestRecord }): VNode | null {
  const where = whereLike(record);
  const { answer } = useAnswer("/requests", { query: { where, last: PERIOD, limit: MOST_ALIKE } }, where);
  if (answer === undefined || answer.found === 0) return null;
  return <a href={hashOf("/requests", { where })}>{alikeText(answer, "15 minutes")}</a>;
}

const PERIOD = "15m";

/** How the time of the request was spent, if the record has it. */
function Times({ record }: { readonly record: RequestRecord }): VNode | null {
  const { beforeCall, untilAnswer, duration } = record;
  if (beforeCall === undefined || untilAnswer === undefined || duration === 0) return null;
  const after = Math.max(0, duration - beforeCall - untilAnswer);
  const parts = [
    ["before", beforeCall, "before the call"],
    ["waiting", untilAnswer, "until the backend's head"],
    ["after", after, "after it"],
  ] as const;
  return (
    <figure style={{ margin: 0 }}>
      <div class="times" aria-hidden="true">
        {parts.map(([name, time]) => (
          <span key={name} class={name} style={{ width: `${(100 * time) / duration}%` }} />
        ))}
      </div>
      <figcaption class="quiet">
        {parts.map(([, time, what]) => `${durationText(time)} ${what}`).join(" · ")}
      </figcaption>
    </figure>
  );
}

function Facts({ record }: { readonly record: RequestRecord }): VNode {
  const { time, worker, number, id, traceId, client, bind, listener, backend, endpoint, attempts, received, sent } =
    record;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["began", time],
    ["record", `${worker}-${number}`],
    ["id", id],
    ["trace", traceId],
    ["client", client],
    ["bind", bind],
    ["listener", listener],
    ["backend", backend],
    ["endpoint", endpoint],
    ["attempts", attempts === undefined ? undefined : String(attempts)],
    ["bodies", `${received} B received, ${sent} B sent`],
    ["kept", record.leftOut === undefined ? undefined : `${record.leftOut} later ones like this were not kept`],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        value === undefined ? null : (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ),
      )}
    </dl>
  );
}

function Outcome({ outcome: { needs = [], steps, given } }: { readonly outcome: ExplainedOutcome }): VNode {
  const lacks = [...new Set(needs.map(({ what }) => what))];
  const follows = Object.entries(given).map(([name, value]) =>
    givenText(name, typeof value === "string" ? value : JSON.stringify(value)),
  );
  return (
    <section>
      <h2>What decided</h2>
      {follows.length === 0 ? null : <p class="quiet">It follows that {follows.join(", ")}.</p>}
      {lacks.length === 0 ? null : (
        <details>
          <summary class="quiet">{lacks.length} facts are not recorded</summary>
          <ul class="mono">
            {lacks.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </details>
      )}
      <StepTree steps={steps} />
    </section>
  );
}

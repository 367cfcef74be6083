import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import type { Overview as Answer, ListenerState, TrafficPoint } from "../../src/admin/plane/answers.ts";
import type { RequestRecord } from "../../src/recorder/records.ts";
import { durationText, keyOf, type RequestGroup, shareText, statusOf, urlOf } from "../../src/report/recorded.ts";
import { type AskError, ask, replicas } from "../ask.ts";
import { withTerm } from "../filter.ts";
import { ConfigState } from "../parts/config-state.tsx";
import { Origin } from "../parts/origin.tsx";
import { Problem } from "../parts/problem.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { Table } from "../parts/table.tsx";
import { toneOf } from "../parts/words.ts";
import { hashOf, requestHash } from "../place.ts";
import { usePoll } from "../poll.ts";
import { fetchOthers } from "./later.tsx";

/** Seconds of traffic, and milliseconds between two questions: a point is added every 10 s. */
const PERIOD = 900;
const PAUSE = 5000;

/** Whether the gateway is well: its configuration, workers and listeners, its traffic, and groups of what failed. */
export function Overview(): VNode {
  const answer = useSignal<Answer | undefined>(undefined);
  const problem = useSignal<AskError | undefined>(undefined);
  usePoll(
    "",
    PAUSE,
    async (signal) => {
      answer.value = await ask("/overview", { signal });
      fetchOthers();
    },
    (error) => {
      problem.value = error;
    },
  );
  return (
    <>
      <h1>Overview</h1>
      <Problem problem={problem.value} />
      {answer.value === undefined ? null : (
        <>
          <State answer={answer.value} />
          <Replicas workers={answer.value.workers} />
          <section>
            <h2>
              <a href={hashOf("/config")}>Configuration</a>
            </h2>
            <ConfigState status={answer.value.status} />
          </section>
          <Traffic traffic={answer.value.traffic} />
          <Failures failures={answer.value.failures} />
          <Listeners listeners={answer.value.listeners} />
        </>
      )}
    </>
  );
}

/** Readiness and workers in a line. */
function State({ answer: { version, pending, draining, workers } }: { readonly answer: Answer }): VNode {
  const isReady = pending.length === 0 && !draining;
  const state = draining ? "shutting down" : isReady ? "ready" : `starting: ${pending.join(", ")}`;
  return (
    <p>
      tracegate {version} · <strong class={isReady ? "good" : "warn"}>{state}</strong>
      {replicas.value.length > 0 ? null : <Workers workers={workers} />}
    </p>
  );
}

/** What each worker does, one after another. */
function Workers({ workers }: Pick<Answer, "workers">): VNode {
  return (
    <>
      {workers.map(({ name, state, generation, deaths }) => (
        <span key={name}>
          {" · "}
          <span class={state === "serving" ? "" : "bad"}>
            {name} {state}
            {generation === null ? "" : ` ${generation}`}
            {deaths === 0 ? "" : `, died ${deaths}×`}
          </span>
        </span>
      ))}
    </>
  );
}

/** The replicas of a gateway in a cluster: which configuration each has, and its workers. Nothing for a single gateway. */
function Replicas({ workers }: Pick<Answer, "workers">): VNode | null {
  const all = replicas.value;
  if (all.length === 0) return null;
  const usual = mostFrequent(all.flatMap(({ configuration }) => configuration?.hash ?? []));
  return (
    <section>
      <h2>Replicas</h2>
      <Table label="Replicas" headings={["pod", "configuration", "workers", "problem"]}>
        {all.map(({ name, configuration, problem }) => {
          const own = workers.filter(({ pod }) => pod === name);
          const serving = own.filter(({ state }) => state === "serving").length;
          const { generation, hash, synchronized } = configuration ?? {};
          return (
            <tr key={name}>
              <td>{name}</td>
              <td class={hash === usual && synchronized !== false ? "" : "warn"}>
                {generation === undefined ? "unknown" : generation}
                {hash === undefined || hash === usual ? "" : ", another one"}
                {synchronized === false ? ", the newest was rejected" : ""}
              </td>
              <td class={serving === own.length ? "" : "bad"}>
                {own.length === 0 ? "" : `${serving} of ${own.length} serving`}
              </td>
              <td class="bad">{problem}</td>
            </tr>
          );
        })}
      </Table>
    </section>
  );
}

/** The value that is there most often. */
function mostFrequent<T>(values: readonly T[]): T | undefined {
  const groups = [...Map.groupBy(values, (value) => value)];
  return groups.sort(([, a], [, b]) => b.length - a.length)[0]?.[0];
}

function Traffic({ traffic: { step, points } }: { readonly traffic: Answer["traffic"] }): VNode {
  // The last one is not over; its first seconds say little.
  const known = points.filter(({ seconds }) => seconds >= step / 2);
  const line = (
    name: string,
    value: (point: TrafficPoint) => number | undefined,
    format: (value: number) => string,
  ) => (
    <Sparkline
      name={name}
      step={step}
      period={PERIOD}
      format={format}
      samples={known.map((point) => ({ time: point.time, value: value(point) }))}
    />
  );
  const share = ({ requests, errors }: TrafficPoint) => (requests === 0 ? undefined : errors / requests);
  return (
    <section>
      <h2>Traffic of the last 15 minutes</h2>
      <div class="lines">
        {line("requests/s", ({ requests, seconds }) => (seconds === 0 ? undefined : requests / seconds), perSecond)}
        {line("errors", share, shareText)}
        {line("p50", ({ p50 }) => p50, durationText)}
        {line("p99", ({ p99 }) => p99, durationText)}
      </div>
    </section>
  );
}

function perSecond(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : rate.toFixed(0);
}

function Listeners({ listeners }: { readonly listeners: readonly ListenerState[] }): VNode {
  return (
    <section>
      <h2>Listeners</h2>
      <Table label="Listeners" headings={["address", "protocol", "host", "name", "routes", "written at"]}>
        {listeners.map(({ key, address, protocol, hostname, gateway, name, routes, origin }) => (
          <tr key={key}>
            <td>{address ?? "internal"}</td>
            <td>{protocol}</td>
            <td>{hostname}</td>
            <td>
              {gateway} {name}
            </td>
            <td class="number">
              <a href={hashOf("/routes", { listener: key })}>{routes}</a>
            </td>
            <td>{origin === undefined ? "" : <Origin origin={origin} />}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Failures({ failures }: { readonly failures: Answer["failures"] }): VNode {
  if (failures === null)
    return <p class="quiet">The recorder is off, so failures are not shown: config.recorder.off</p>;
  const { groups, requests } = failures;
  return (
    <section>
      <h2>Failed or rejected in the last 15 minutes</h2>
      {groups.length === 0 ? <p class="quiet">None of {requests} requests.</p> : <Groups groups={groups} />}
    </section>
  );
}

function Groups({ groups }: { readonly groups: readonly RequestGroup<RequestRecord>[] }): VNode {
  return (
    <Table label="Groups of failures" headings={["count", "share", "status", "route", "decided by", "newest"]}>
      {groups.map((group) => (
        <tr key={keyOf(group.example)}>
          <td class="number">{group.count}</td>
          <td class="number">{shareText(group.share)}</td>
          <td class={toneOf(group.example)}>{statusOf(group)}</td>
          <td>
            {group.route === null ? (
              ""
            ) : (
              <a href={hashOf("/requests", { where: withTerm("", "route", group.route), errors: "true" })}>
                {group.route}
              </a>
            )}
          </td>
          <td title={group.decidedBy}>{group.decidedBy}</td>
          <td>
            <a href={requestHash(keyOf(group.example))}>{urlOf(group.example) || "unreadable"}</a>
          </td>
        </tr>
      ))}
    </Table>
  );
}

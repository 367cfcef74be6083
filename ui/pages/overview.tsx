import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import type { ConfigStatus } from "../../src/admin/plane/config-status.ts";
import type { RecordAnswer, RequestRecord } from "../../src/recorder/records.ts";
import { groupsOf, type RequestGroup, shareText, statusOf, urlOf } from "../../src/report/recorded.ts";
import { type AskError, ask } from "../ask.ts";
import { toneOf } from "../parts/words.ts";
import { hashOf, requestHash } from "../place.ts";
import { usePoll } from "../poll.ts";
import { keyOf } from "../request-list.ts";

const PERIOD = "15m";
const MOST = 1000;

/** Whether the gateway is well: its configuration, and groups of what failed. */
export function Overview(): VNode {
  const status = useSignal<ConfigStatus | undefined>(undefined);
  const failed = useSignal<RecordAnswer | undefined>(undefined);
  const problem = useSignal<AskError | undefined>(undefined);
  usePoll(
    "",
    async (signal) => {
      const query = { errors: true, last: PERIOD, limit: MOST };
      const [newStatus, newFailed] = await Promise.all([
        ask("/config/status", { signal }),
        ask("/requests", { query, signal }),
      ]);
      status.value = newStatus;
      failed.value = newFailed;
    },
    (error) => {
      problem.value = error;
    },
  );
  return (
    <>
      <h1>Overview</h1>
      {problem.value === undefined ? null : (
        <p class="problem" role="alert">
          {problem.value.message}
          {problem.value.passes ? "\nTrying again." : ""}
        </p>
      )}
      {status.value === undefined ? null : <Configuration status={status.value} />}
      {failed.value === undefined ? null : <Failures answer={failed.value} />}
    </>
  );
}

function Configuration({ status }: { readonly status: ConfigStatus }): VNode {
  const { generation, appliedAt, source, synchronized, lastError, diskDiffers, restartRequired } = status;
  return (
    <section>
      <h2>Configuration</h2>
      <dl class="facts">
        <dt>in effect</dt>
        <dd>
          {generation} since {appliedAt ?? "never"}
        </dd>
        <dt>source</dt>
        <dd>{source}</dd>
        <dt>state</dt>
        <dd class={synchronized ? "good" : "bad"}>
          {synchronized
            ? "up to date"
            : lastError !== null
              ? "the newest was rejected"
              : diskDiffers
                ? "the files differ"
                : "not in effect yet"}
        </dd>
        {restartRequired.length === 0 ? null : (
          <>
            <dt>needs a restart</dt>
            <dd>{restartRequired.join(", ")}</dd>
          </>
        )}
      </dl>
      {lastError === null ? null : <pre class="problem mono">{lastError.message}</pre>}
    </section>
  );
}

function Failures({ answer: { records, requests } }: { readonly answer: RecordAnswer }): VNode {
  const groups = groupsOf(records, requests);
  return (
    <section>
      <h2>Failed or rejected in the last {PERIOD}</h2>
      {groups.length === 0 ? <p class="quiet">None of {requests} requests.</p> : <Groups groups={groups} />}
    </section>
  );
}

function Groups({ groups }: { readonly groups: readonly RequestGroup<RequestRecord>[] }): VNode {
  return (
    <section class="scroll" tabIndex={0} aria-label="Groups of failures">
      <table class="mono">
        <thead>
          <tr>
            <th scope="col">count</th>
            <th scope="col">share</th>
            <th scope="col">status</th>
            <th scope="col">route</th>
            <th scope="col">decided by</th>
            <th scope="col">newest</th>
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => (
            <tr key={keyOf(group.example)}>
              <td class="number">{group.count}</td>
              <td class="number">{shareText(group.share)}</td>
              <td class={toneOf(group.example)}>{statusOf(group)}</td>
              <td>
                {group.route === null ? (
                  ""
                ) : (
                  <a href={hashOf("/requests", { route: group.route, errors: "true" })}>{group.route}</a>
                )}
              </td>
              <td>{group.decidedBy}</td>
              <td>
                <a href={requestHash(keyOf(group.example))}>{urlOf(group.example) || "unreadable"}</a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

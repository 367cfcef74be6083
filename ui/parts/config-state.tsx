import type { ComponentChildren, VNode } from "preact";
import type { ConfigStatus, PendingCertificates } from "../../src/admin/plane/config-status.ts";
import { counted } from "../../src/base/counted.ts";

/** Which configuration is in effect, why the newest one is not, and what it still lacks. */
export function ConfigState({ status }: { readonly status: ConfigStatus }): VNode {
  const { generation, appliedAt, source, synchronized, lastError, nextRetryAt, restartRequired, stream } = status;
  const { warnings, pendingCertificates, missingDocuments = [] } = status;
  return (
    <>
      <dl class="facts">
        <dt>in effect</dt>
        <dd>
          {generation} since {appliedAt ?? "never"}
        </dd>
        <dt>source</dt>
        <dd>{source}</dd>
        {stream === undefined ? null : (
          <>
            <dt>controller</dt>
            <dd class={stream.connected ? "good" : "bad"}>
              {stream.connected ? "connected" : (stream.problem ?? "not connected yet")}
            </dd>
          </>
        )}
        <dt>state</dt>
        <dd class={synchronized ? "good" : "bad"}>{stateOf(status)}</dd>
        {nextRetryAt === null ? null : (
          <>
            <dt>next attempt</dt>
            <dd>{nextRetryAt}</dd>
          </>
        )}
        {restartRequired.length === 0 ? null : (
          <>
            <dt>needs a restart</dt>
            <dd>{restartRequired.join(", ")}</dd>
          </>
        )}
      </dl>
      {lastError === null ? null : (
        <pre class="problem mono" tabIndex={0}>
          {lastError.message}
        </pre>
      )}
      <Notes count={pendingCertificates?.count} what="pending certificate" others="tgctl certs" isOpen>
        {pendingCertificates?.first.map((certificate, index) => (
          <li key={index}>{certificateText(certificate)}</li>
        ))}
      </Notes>
      <Notes count={missingDocuments.length} what="missing document" isOpen>
        {missingDocuments.map(({ url, problem, since, nextAttemptAt, formerInUse }) => (
          <li key={url}>
            {url}: {problem}; since {since}, next attempt {nextAttemptAt};{" "}
            {formerInUse ? "the former one is in use" : "requests that need it are rejected"}
          </li>
        ))}
      </Notes>
      <Notes count={warnings?.count} what="warning" others="tracegate check">
        {warnings?.first.map(({ file, line, column, path, message, remedy }) => (
          <li key={`${line}:${column}:${message}`}>
            {file}:{line}:{column}: {path}: {message}
            {remedy === undefined ? "" : `; ${remedy}`}
          </li>
        ))}
      </Notes>
    </>
  );
}

function stateOf({ synchronized, lastError, diskDiffers }: ConfigStatus): string {
  if (synchronized) return "up to date";
  if (lastError !== null) return "the newest was rejected";
  return diskDiffers ? "the files differ" : "not in effect yet";
}

/** What the gateway does about a certificate, and why the last order failed. */
function certificateText({ name, state, next, lastError }: PendingCertificates["first"][number]): string {
  const parts = [
    state === "pending" ? "" : state,
    next === null ? "" : `${next.step} ${next.at ?? "now"}`,
    lastError === null ? "" : `${lastError.message} (${lastError.count} in a row)`,
  ];
  return `${name}: ${parts.filter(Boolean).join("; ")}`;
}

interface NotesProps {
  /** 0, undefined: nothing is shown. */
  readonly count: number | undefined;
  readonly what: string;
  /** The command that prints those that are not among `children`. */
  readonly others?: string;
  readonly isOpen?: boolean;
  /** The first of them. */
  readonly children: readonly ComponentChildren[] | undefined;
}

/** How many of a kind there are, which opens into a list. */
function Notes({ count = 0, what, others = "", isOpen = false, children = [] }: NotesProps): VNode | null {
  if (count === 0) return null;
  return (
    <details class="notes" open={isOpen}>
      <summary>{counted(count, what)}</summary>
      <ul class="mono">
        {children}
        {count > children.length ? <li>and more, which {others} prints</li> : null}
      </ul>
    </details>
  );
}

import type { VNode } from "preact";
import type { ConfigStatus } from "../../src/admin/plane/config-status.ts";

/** Which configuration is in effect, and why the newest one is not. */
export function ConfigState({ status }: { readonly status: ConfigStatus }): VNode {
  const { generation, appliedAt, source, synchronized, lastError, diskDiffers, restartRequired, warnings } = status;
  return (
    <>
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
      {warnings === undefined || warnings.count === 0 ? null : (
        <details class="warnings">
          <summary>
            {warnings.count} {warnings.count === 1 ? "warning" : "warnings"}
          </summary>
          <ul class="mono">
            {warnings.first.map(({ file, line, column, path, message, remedy }) => (
              <li key={`${line}:${column}:${message}`}>
                {file}:{line}:{column}: {path}: {message}
                {remedy === undefined ? "" : `; ${remedy}`}
              </li>
            ))}
            {warnings.count > warnings.first.length ? <li>and more, which tracegate check prints</li> : null}
          </ul>
        </details>
      )}
      {lastError === null ? null : (
        <pre class="problem mono" tabIndex={0}>
          {lastError.message}
        </pre>
      )}
    </>
  );
}

import type { VNode } from "preact";
import type { EndpointView } from "../../src/admin/plane/backends.ts";
import { stateText, whyText } from "../../src/report/health.ts";
import { durationText } from "../../src/report/recorded.ts";
import { stateTone } from "./words.ts";

/** What a list of endpoints has in its columns; numbers stand at the right. */
const COLUMNS = ["endpoint", "state", "why"];
const NUMBERS = ["health", "latency", "active", "requests", "connections", "waiting", "over limit"];
/** How many columns these are. */
export const ENDPOINT_COLUMNS = COLUMNS.length + NUMBERS.length;

/** The headings of `EndpointCells`. */
export function EndpointHeadings(): VNode {
  return (
    <>
      {COLUMNS.map((name) => (
        <th key={name} scope="col">
          {name}
        </th>
      ))}
      {NUMBERS.map((name) => (
        <th key={name} scope="col" class="number">
          {name}
        </th>
      ))}
    </>
  );
}

/** An endpoint in a row: whether it gets requests, why not, and its load. */
export function EndpointCells({ endpoint }: { readonly endpoint: EndpointView }): VNode {
  const { addresses, name, state, health, latency, active, requests, pool, limits } = endpoint;
  const why = whyText(endpoint);
  return (
    <>
      <td title={[...addresses, name?.host].join("\n")}>
        {addresses.join(" ")}
        {name?.host === undefined ? null : <span class="quiet"> {name.host}</span>}
      </td>
      <td class={stateTone(state)}>{stateText(endpoint)}</td>
      <td title={why}>{why}</td>
      <td class={`number ${health < 0.9 ? "warn" : "quiet"}`}>{health.toFixed(2)}</td>
      <td class="number">{latency === 0 ? "" : durationText(latency * 1000)}</td>
      <Count value={active} />
      <Count value={requests} />
      <Count value={pool && pool.active + pool.idle + pool.connecting} />
      <Count value={pool?.waiting} tone="warn" />
      <Count value={limits?.rejected} tone="bad" />
    </>
  );
}

interface CountProps {
  /** undefined: unknown. */
  readonly value: number | undefined;
  /** The color unless it is 0. */
  readonly tone?: "warn" | "bad";
}

function Count({ value, tone }: CountProps): VNode {
  return <td class={`number ${value === 0 ? "quiet" : (tone ?? "")}`}>{value}</td>;
}

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { isObject } from "../../src/base/fields.ts";

/** Entries of an object or list that are shown at first. */
const SHOWN = 100;
/** Levels that are open at first. */
const OPEN = 4;

interface ValueTreeProps {
  readonly value: Readonly<Record<string, unknown>> | readonly unknown[];
  readonly depth?: number;
}

/** JSON data as a tree that can be folded. */
export function ValueTree({ value, depth = 0 }: ValueTreeProps): VNode {
  const most = useSignal(SHOWN);
  const entries = Object.entries(value);
  return (
    <ul class="values">
      {entries.slice(0, most.value).map(([name, each]) => (
        <Entry key={name} name={name} value={each} depth={depth} />
      ))}
      {entries.length <= most.value ? null : (
        <li>
          <button
            type="button"
            onClick={() => {
              most.value += 10 * SHOWN;
            }}
          >
            {entries.length - most.value} more
          </button>
        </li>
      )}
    </ul>
  );
}

function Entry({
  name,
  value,
  depth,
}: {
  readonly name: string;
  readonly value: unknown;
  readonly depth: number;
}): VNode {
  const inner = Array.isArray(value) || isObject(value) ? value : undefined;
  if (inner === undefined || Object.keys(inner).length === 0)
    return (
      <li>
        <span class="quiet">{name}</span> {textOf(value)}
      </li>
    );
  return (
    <li>
      <details open={depth < OPEN}>
        <summary>
          <span class="quiet">{name}</span>
        </summary>
        <ValueTree value={inner} depth={depth + 1} />
      </details>
    </li>
  );
}

function textOf(value: unknown): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}

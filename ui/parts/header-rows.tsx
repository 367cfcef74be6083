import type { TargetedClipboardEvent, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { AskError } from "../ask.ts";
import { type HeaderRow, headersIn, isWritten } from "../explain-question.ts";
import { Problem } from "./problem.tsx";

interface HeaderRowsProps {
  readonly rows: readonly HeaderRow[];
  readonly change: (rows: readonly HeaderRow[]) => void;
  /** What is wrong with them. */
  readonly problem?: AskError | undefined;
}

const PROBLEM = "header-problem";

/** Header fields, a row each. Pasting lines of `name: value` into a name makes rows of them. */
export function HeaderRows({ rows, change, problem }: HeaderRowsProps): VNode {
  const set = useRef<HTMLFieldSetElement>(null);
  /** After a click has changed the rows, the last such element gets the focus. */
  const next = useRef<".name" | ".add" | undefined>(undefined);
  useEffect(() => {
    if (next.current !== undefined)
      [...(set.current?.querySelectorAll<HTMLElement>(next.current) ?? [])].at(-1)?.focus();
    next.current = undefined;
  });
  const shown = rows.length === 0 ? BLANK : rows;
  // The gateway counts the rows in which something is written.
  const about = problem?.about;
  const counted = about !== undefined && "request" in about ? about.header : undefined;
  const wrong = counted === undefined ? -1 : [...shown.keys()].filter((i) => isWritten(shown[i] ?? NEW))[counted];
  const replace = (index: number, ...by: readonly HeaderRow[]): void => change(shown.toSpliced(index, 1, ...by));
  const paste = (event: TargetedClipboardEvent<HTMLInputElement>, index: number): void => {
    const text = event.clipboardData?.getData("text") ?? "";
    if (!/[:\n]/.test(text)) return;
    event.preventDefault();
    const pasted = headersIn(text);
    replace(index, ...[shown[index] ?? NEW].filter(isWritten), ...pasted);
  };
  return (
    <fieldset class="header-rows" ref={set}>
      <legend class="quiet">Header fields</legend>
      {shown.map(([name, value], index) => {
        const attributes = {
          spellcheck: false,
          ...(index === wrong && { "aria-invalid": true, "aria-describedby": PROBLEM }),
        };
        return (
          <div key={index}>
            <input
              {...attributes}
              class="name"
              aria-label={`Name of field ${index + 1}`}
              placeholder="x-canary"
              value={name}
              onInput={({ currentTarget }) => replace(index, [currentTarget.value, value])}
              onPaste={(event) => paste(event, index)}
            />
            <input
              {...attributes}
              aria-label={`Value of field ${index + 1}`}
              placeholder="yes"
              value={value}
              onInput={({ currentTarget }) => replace(index, [name, currentTarget.value])}
            />
            <button
              type="button"
              aria-label={`Remove field ${index + 1}`}
              onClick={() => {
                // The next row takes its place, and the focus.
                next.current = index < shown.length - 1 ? undefined : ".add";
                replace(index);
              }}
            >
              ×
            </button>
          </div>
        );
      })}
      <button
        type="button"
        class="add"
        onClick={() => {
          next.current = ".name";
          change([...shown, NEW]);
        }}
      >
        Add a field
      </button>
      {problem === undefined ? null : (
        <div id={PROBLEM}>
          <Problem problem={problem} />
        </div>
      )}
    </fieldset>
  );
}

const NEW: HeaderRow = ["", ""];
const BLANK = [NEW];

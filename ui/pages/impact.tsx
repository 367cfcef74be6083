import { signal, useSignal } from "@preact/signals";
import type { TargetedEvent, VNode } from "preact";
import type { ChangeClass } from "../../src/impact/difference.ts";
import type { Example } from "../../src/impact/example.ts";
import type { Change } from "../../src/impact/impact.ts";
import { about, changeText, partText, WORST_FIRST } from "../../src/impact/impact-text.ts";
import type { GatewayImpact } from "../../src/impact/merge.ts";
import type { ExplainedOutcome } from "../../src/rehearsal/explanation.ts";
import { useAnswer } from "../answer.ts";
import { addressOf, draftOfRequest } from "../explain-question.ts";
import { InEffect } from "../parts/origin.tsx";
import { Outcome } from "../parts/outcome.tsx";
import { Problem } from "../parts/problem.tsx";

/** Bytes of a configuration that the gateway reads. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Changes of a class that are shown. */
const MAX_SHOWN = 50;

const TITLES: Readonly<Record<ChangeClass, string>> = {
  refused: "Refused",
  maybeRefused: "May be refused",
  granted: "No longer refused",
  maybeGranted: "May no longer be refused",
  movedRoute: "Another route",
  movedBackend: "Another backend",
  changedOnTheWay: "Changed on the way",
  unknown: "Not known",
};

/** A configuration to compare with the one in effect. */
interface Candidate {
  readonly text: string;
  /** Of its file, which positions begin with. */
  readonly name: string;
  /** A duration such as `1h`; empty: all samples. */
  readonly last: string;
  /** From 1 on: the same text may have another answer by now. */
  readonly times: number;
}

/** What is in the form and what was asked last: they are there again when somebody comes back from an example. Nothing is stored. */
const typed = signal("");
/** Of the file that the text comes from; empty: it was typed or pasted. */
const file = signal("");
const asked = signal<Candidate | undefined>(undefined);

/** What a new configuration would do to the requests that the gateway has got. */
export function Impact(): VNode {
  const mistake = useSignal("");
  const read = async (chosen: File | undefined): Promise<void> => {
    if (chosen === undefined) return;
    mistake.value = await mistakeIn(chosen);
    if (mistake.value !== "") return;
    typed.value = await chosen.text();
    file.value = chosen.name;
  };
  const submit = (event: TargetedEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const last = String(new FormData(event.currentTarget).get("last")).trim();
    mistake.value = typed.value.trim() === "" ? "There is no text yet: paste a configuration, or choose its file." : "";
    const times = (asked.value?.times ?? 0) + 1;
    if (mistake.value === "") asked.value = { text: typed.value, name: file.value, last, times };
  };
  return (
    <>
      <h1>What a change would do</h1>
      <form
        class="impact"
        onSubmit={submit}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          const [dropped] = event.dataTransfer?.files ?? [];
          // The browser itself inserts a text that is dropped.
          if (dropped === undefined) return;
          event.preventDefault();
          void read(dropped);
        }}
      >
        <textarea
          class="mono"
          aria-label="New configuration"
          placeholder="Paste a configuration, or drop its file here"
          rows={10}
          spellcheck={false}
          value={typed}
          onInput={({ currentTarget }) => {
            typed.value = currentTarget.value;
            file.value = "";
          }}
        />
        <div class="tools">
          <input
            type="file"
            aria-label="File with the new configuration"
            accept=".yaml,.yml,.json,text/*"
            onClick={({ currentTarget }) => {
              // A file that has changed can be chosen again.
              currentTarget.value = "";
            }}
            onChange={({ currentTarget }) => void read(currentTarget.files?.[0])}
          />
          <label htmlFor="impact-last">
            requests of the last{" "}
            <input id="impact-last" name="last" placeholder="1h" size={5} defaultValue={asked.value?.last} />
          </label>
          <button type="submit">Compare</button>
          <span class="quiet">Nothing is applied. The text stays in this page and the gateway.</span>
        </div>
      </form>
      {mistake.value === "" ? null : (
        <p class="problem" role="alert">
          {mistake.value}
        </p>
      )}
      {asked.value === undefined ? null : <Answer candidate={asked.value} />}
    </>
  );
}

/** Why a file cannot be a configuration; empty: it may be one. */
async function mistakeIn(file: File): Promise<string> {
  if (file.size === 0) return `${file.name} is empty.`;
  if (file.size > MAX_BYTES) return `${file.name} has ${file.size} bytes; the gateway reads no more than ${MAX_BYTES}.`;
  const start = new Uint8Array(await file.slice(0, 4096).arrayBuffer());
  return start.includes(0) ? `${file.name} is no text: choose a configuration in YAML or JSON.` : "";
}

function Answer({ candidate }: { readonly candidate: Candidate }): VNode {
  const { text, name, last, times } = candidate;
  const { answer, problem } = useAnswer("/impact", { body: text, query: { name, last } }, String(times));
  if (problem !== undefined)
    return (
      <div class="mono">
        <Problem problem={problem} />
      </div>
    );
  if (answer === undefined) return <p aria-busy="true">Comparing …</p>;
  if (answer.samples === 0)
    return <p>There are no samples to judge by: the gateway has got no requests{last === "" ? "" : ` for ${last}`}.</p>;
  return <Found impact={answer} candidate={candidate} />;
}

interface FoundProps {
  readonly impact: GatewayImpact;
  readonly candidate: Candidate;
}

function Found({ impact, candidate }: FoundProps): VNode {
  const { classes, changes, since, incomplete } = impact;
  const found = WORST_FIRST.filter((name) => classes[name].samples > 0);
  return (
    <>
      <p>
        Of {about(impact).trim()} requests ({impact.samples} samples{since === null ? "" : ` since ${since}`}),{" "}
        {about(classes.unchanged).trim()} would not change ({partText(classes.unchanged, impact)}).
      </p>
      {incomplete === true ? <p class="quiet">There are more changes than are listed here.</p> : null}
      {found.map((name) => {
        const own = changes.filter((change) => change.class === name);
        return (
          <section key={name}>
            <h2>
              {TITLES[name]}: {about(classes[name]).trim()}{" "}
              {Math.round(classes[name].requests) === 1 ? "request" : "requests"}
            </h2>
            <ul class="changes">
              {own.slice(0, MAX_SHOWN).map((change, index) => (
                <ChangeItem key={index} change={change} impact={impact} candidate={candidate} />
              ))}
            </ul>
            {own.length > MAX_SHOWN ? (
              <p class="quiet">and {own.length - MAX_SHOWN} more changes of this kind</p>
            ) : null}
          </section>
        );
      })}
    </>
  );
}

interface ChangeItemProps extends FoundProps {
  readonly change: Change;
}

/** A change in a sentence, with some of the requests that it concerns. */
function ChangeItem({ change, impact, candidate }: ChangeItemProps): VNode {
  return (
    <li>
      <p>
        <strong>{about(change).trim()}</strong> {changeText(change)}{" "}
        <span class="quiet">({partText(change, impact)})</span>
      </p>
      {change.examples.map((example, index) => (
        <ExampleItem key={index} example={example} candidate={candidate} />
      ))}
    </li>
  );
}

interface ExampleProps {
  readonly example: Example;
  readonly candidate: Candidate;
}

/** A sampled request; opened, what both configurations do with it. */
function ExampleItem({ example, candidate }: ExampleProps): VNode {
  const isOpen = useSignal(false);
  const { method, authority, target, time, request } = example;
  return (
    <details
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary class="mono">
        {method} {authority}
        {target} <span class="quiet">{time}</span>
      </summary>
      {isOpen.value && request === undefined ? (
        <p class="quiet">The sample is too long to be explained here, or begins a tunnel.</p>
      ) : null}
      {isOpen.value && request !== undefined ? <BothOutcomes request={request} candidate={candidate} /> : null}
    </details>
  );
}

interface BothOutcomesProps {
  readonly request: NonNullable<Example["request"]>;
  readonly candidate: Candidate;
}

/** What happens to a request now, and with the new configuration. */
function BothOutcomes({ request, candidate }: BothOutcomesProps): VNode {
  const { text: config, name, times } = candidate;
  const next = { request, config, ...(name !== "" && { configName: name }) };
  const now = useAnswer("/explain", { body: { request } }, String(times));
  const then = useAnswer("/explain", { body: next }, String(times));
  const before = now.answer?.outcomes ?? [];
  return (
    <>
      <p class="quiet">
        Samples have no body, and no secrets. <a href={addressOf(draftOfRequest(request)).hash}>What if it had …</a>
      </p>
      <div class="outcomes">
        <section aria-label="Now">
          <strong>Now</strong>
          <Problem problem={now.problem} />
          {before.map((outcome, index) => (
            <Outcome key={index} outcome={outcome} before={undefined} />
          ))}
        </section>
        <section aria-label="With the new configuration">
          <strong>With the new configuration</strong>
          <Problem problem={then.problem} />
          <InEffect.Provider value={false}>
            {then.answer?.outcomes.map((outcome, index) => (
              <Outcome key={index} outcome={outcome} before={alikeOf(outcome, before) ?? before[index]} />
            ))}
          </InEffect.Provider>
        </section>
      </div>
    </>
  );
}

/** The outcome that was given the same. */
function alikeOf({ given }: ExplainedOutcome, outcomes: readonly ExplainedOutcome[]): ExplainedOutcome | undefined {
  return outcomes.find((each) => JSON.stringify(each.given) === JSON.stringify(given));
}

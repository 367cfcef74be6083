import { useSignal } from "@preact/signals";
import type { TargetedEvent, VNode } from "preact";
import type { ChangeClass } from "../../src/impact/difference.ts";
import type { Change, Example } from "../../src/impact/impact.ts";
import { about, changeText, partText, WORST_FIRST } from "../../src/impact/impact-text.ts";
import type { GatewayImpact } from "../../src/impact/merge.ts";
import { useAnswer } from "../answer.ts";
import { addressOf, EMPTY_DRAFT, questionOf } from "../explain-question.ts";
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
}

/** What a new configuration would do to the requests that the gateway has got. */
export function Impact(): VNode {
  const text = useSignal("");
  const name = useSignal("");
  const mistake = useSignal("");
  const asked = useSignal<Candidate | undefined>(undefined);
  const read = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return;
    mistake.value = await mistakeIn(file);
    if (mistake.value !== "") return;
    text.value = await file.text();
    name.value = file.name;
  };
  const submit = (event: TargetedEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const last = String(new FormData(event.currentTarget).get("last")).trim();
    mistake.value = text.value.trim() === "" ? "There is no text yet: paste a configuration, or choose its file." : "";
    if (mistake.value === "") asked.value = { text: text.value, name: name.value, last };
  };
  return (
    <>
      <h1>What a change would do</h1>
      <form
        class="impact"
        onSubmit={submit}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          void read(event.dataTransfer?.files[0]);
        }}
      >
        <textarea
          class="mono"
          aria-label="New configuration"
          placeholder="Paste a configuration, or drop its file here"
          rows={10}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
            name.value = "";
          }}
        />
        <div class="tools">
          <input
            type="file"
            aria-label="File with the new configuration"
            accept=".yaml,.yml,.json,text/*"
            onChange={({ currentTarget }) => void read(currentTarget.files?.[0])}
          />
          <label htmlFor="impact-last">
            requests of the last <input id="impact-last" name="last" placeholder="1h" size={5} />
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
  const { text, name, last } = candidate;
  const { answer, problem } = useAnswer("/impact", { body: text, query: { name, last } }, JSON.stringify(candidate));
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
              {TITLES[name]}: {about(classes[name]).trim()} requests
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
  const { method, authority, target, time } = example;
  return (
    <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary class="mono">
        {method} {authority}
        {target} <span class="quiet">{time}</span>
      </summary>
      {isOpen.value ? <BothOutcomes example={example} candidate={candidate} /> : null}
    </details>
  );
}

/** Now, and with the new configuration. */
function BothOutcomes({ example, candidate }: ExampleProps): VNode {
  const { method, authority, target } = example;
  const draft = { ...EMPTY_DRAFT, method, url: `http://${authority}${target}` };
  const question = questionOf(draft);
  const { text: config, name } = candidate;
  const next = { ...question, config, ...(name !== "" && { configName: name }) };
  const now = useAnswer("/explain", { body: question }, "");
  const then = useAnswer("/explain", { body: next }, "");
  return (
    <>
      <p class="quiet">
        The sample's header fields and body are not part of this; what depends on them may differ.{" "}
        <a href={addressOf(draft).hash}>Add what matters</a>
      </p>
      <div class="outcomes">
        {(
          [
            ["Now", now],
            ["With the new configuration", then],
          ] as const
        ).map(([title, { answer, problem }]) => (
          <section key={title} aria-label={title}>
            <strong>{title}</strong>
            <Problem problem={problem} />
            {answer?.outcomes.map((outcome, index) => (
              <Outcome
                key={index}
                outcome={outcome}
                before={title === "Now" ? undefined : now.answer?.outcomes[index]}
              />
            ))}
          </section>
        ))}
      </div>
    </>
  );
}

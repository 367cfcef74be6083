import { useSignal } from "@preact/signals";
import type { ComponentChildren, TargetedEvent, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { CONDITION } from "../../src/rehearsal/condition.ts";
import type { Explanation } from "../../src/rehearsal/explanation.ts";
import { useAnswer } from "../answer.ts";
import type { AskError } from "../ask.ts";
import { addressOf, type Draft, draftOf, questionOf } from "../explain-question.ts";
import { Outcome, valueText } from "../parts/outcome.tsx";
import { Problem } from "../parts/problem.tsx";
import type { PageProps } from "./pages.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** What would happen to a request: a form with its facts, what is assumed, and every outcome. Nothing is sent. */
export function Explain({ place: { query } }: PageProps): VNode {
  // What is asked; the address has it without secrets.
  const asked = useSignal<Draft>(draftOf(query));
  const problem = useSignal<AskError | undefined>(undefined);
  useEffect(() => {
    const there = draftOf(query);
    if (addressOf(there).hash !== addressOf(asked.value).hash) asked.value = there;
  }, [query]);
  const draft = asked.value;
  const { leftOut } = addressOf(draft);
  const put = (next: Draft): void => {
    asked.value = next;
    const { hash } = addressOf(next);
    if (hash !== location.hash) location.hash = hash;
  };
  return (
    <>
      <h1>What would happen</h1>
      <Form key={JSON.stringify([...query])} draft={draft} problem={problem.value} put={put} />
      {leftOut.length === 0 ? null : (
        <p class="quiet">
          The address of this page leaves out secrets: {leftOut.join(", ")}. Whoever opens it sees them as unknown.
        </p>
      )}
      {draft.url === "" ? (
        <p class="quiet">The gateway rehearses the request with its own code. No backend or service gets anything.</p>
      ) : (
        <Answer draft={draft} put={put} problem={problem} />
      )}
    </>
  );
}

interface FormProps {
  readonly draft: Draft;
  readonly problem: AskError | undefined;
  readonly put: (draft: Draft) => void;
}

/** The facts of the request. Enter in a line, or the button, asks. */
function Form({ draft, problem, put }: FormProps): VNode {
  const { method, url, headers, body, source, version, certificate } = draft;
  const submit = (event: TargetedEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = (name: string): string => String(data.get(name) ?? "").replaceAll("\r\n", "\n");
    put({
      method: text("method").trim(),
      url: text("url").trim(),
      headers: text("headers"),
      body: text("body"),
      source: text("source").trim(),
      version: text("version"),
      certificate: text("certificate").trim(),
      assume: draft.assume,
    });
  };
  const about = problem?.about;
  const wrong = about !== undefined && "request" in about ? about.request : undefined;
  const field = (name: string) => ({
    id: idOf(name),
    name,
    spellcheck: false,
    ...(wrong === name && { "aria-invalid": true, "aria-describedby": "explain-problem" }),
  });
  const isOpen = body !== "" || source !== "" || version !== "" || certificate !== "";
  return (
    <form class="explain" onSubmit={submit}>
      <Labeled field="method" name="Method">
        <input {...field("method")} defaultValue={method} placeholder="GET" list="methods" size={8} />
        <datalist id="methods">
          {METHODS.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      </Labeled>
      <Labeled field="url" name="URL" wide>
        <input {...field("url")} defaultValue={url} placeholder="http://shop.example/cart" required />
      </Labeled>
      <Labeled field="headers" name="Header fields, one per line" wide>
        <textarea {...field("headers")} defaultValue={headers} placeholder="x-canary: yes" rows={3} />
      </Labeled>
      <details open={isOpen}>
        <summary>Body, client, version</summary>
        <div class="explain">
          <Labeled field="body" name="Body" wide>
            <textarea {...field("body")} defaultValue={body} rows={3} />
          </Labeled>
          <Labeled field="source" name="Client address">
            <input {...field("source")} defaultValue={source} placeholder="127.0.0.1" />
          </Labeled>
          <Labeled field="version" name="HTTP version">
            <select {...field("version")} defaultValue={version}>
              <option value="">as negotiated</option>
              <option value="1.1">1.1</option>
              <option value="2">2</option>
            </select>
          </Labeled>
          <Labeled field="certificate" name="Client certificate and key, PEM" wide>
            <textarea {...field("certificate")} defaultValue={certificate} rows={2} />
          </Labeled>
        </div>
      </details>
      <button type="submit">Explain</button>
    </form>
  );
}

function idOf(field: string): string {
  return `explain-${field}`;
}

interface LabeledProps {
  readonly field: string;
  readonly name: string;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

function Labeled({ field, name, wide = false, children }: LabeledProps): VNode {
  return (
    <label class={wide ? "labeled grows" : "labeled"} htmlFor={idOf(field)}>
      <span class="quiet">{name}</span>
      {children}
    </label>
  );
}

interface AnswerProps {
  readonly draft: Draft;
  readonly put: (draft: Draft) => void;
  readonly problem: { value: AskError | undefined };
}

/** What the outcomes depend on, as switches, and the outcomes side by side. */
function Answer({ draft, put, problem }: AnswerProps): VNode {
  const question = questionOf(draft);
  const answered = useAnswer("/explain", { body: question }, JSON.stringify(question));
  useEffect(() => {
    problem.value = answered.problem;
  }, [answered.problem]);
  // Conditions cannot be assumed: outcomes in which they are otherwise are hidden.
  const conditions = useSignal<ReadonlyMap<string, string>>(new Map());
  const choices = useKnown(JSON.stringify(questionOf({ ...draft, assume: new Map() })), answered.answer);
  const { assume } = draft;
  const set = (name: string, value: string | undefined): void => {
    const before = name.startsWith(CONDITION) ? conditions.value : assume;
    const next = new Map(before);
    if (value === undefined) next.delete(name);
    else next.set(name, value);
    if (before === assume) put({ ...draft, assume: next });
    else conditions.value = next;
  };
  const names = new Set([...choices.keys(), ...assume.keys()]);
  const outcomes = answered.answer?.outcomes ?? [];
  const shown = outcomes.filter(({ given }) =>
    [...conditions.value].every(([name, value]) => given[name] === undefined || String(given[name]) === value),
  );
  return (
    <>
      <section class="switches" aria-label="Assumptions">
        {[...names].map((name) => (
          <Switches
            key={name}
            name={name}
            values={[...new Set([...(choices.get(name) ?? []), ...(assume.has(name) ? [assume.get(name) ?? ""] : [])])]}
            value={(name.startsWith(CONDITION) ? conditions.value : assume).get(name)}
            set={(value) => set(name, value)}
          />
        ))}
        <More add={(name, value) => set(name, value)} />
      </section>
      <div id="explain-problem">
        <Problem problem={answered.problem} />
      </div>
      {answered.answer?.omitted === undefined ? null : (
        <p class="quiet">
          {outcomes.length} of at least {outcomes.length + answered.answer.omitted} outcomes are shown. Assume something
          to see the others.
        </p>
      )}
      <div class="outcomes">
        {shown.map((outcome, index) => (
          <Outcome key={JSON.stringify(outcome.given)} outcome={outcome} before={shown[index - 1]} />
        ))}
      </div>
    </>
  );
}

/**
 * The choices that the outcomes of a request had so far, with their values: an assumption leaves only one of them. `key` stands for the
 * request.
 */
function useKnown(key: string, answer: Explanation | undefined): ReadonlyMap<string, ReadonlySet<string>> {
  const known = useRef({ key, values: new Map<string, Set<string>>() });
  if (known.current.key !== key) known.current = { key, values: new Map() };
  const { values } = known.current;
  for (const { given } of answer?.outcomes ?? [])
    for (const [name, value] of Object.entries(given)) {
      const all = values.get(name) ?? new Set();
      values.set(name, all.add(valueText(value)));
    }
  return values;
}

interface SwitchesProps {
  readonly name: string;
  readonly values: readonly string[];
  /** undefined: it is left open. */
  readonly value: string | undefined;
  readonly set: (value: string | undefined) => void;
}

/** What is assumed about one thing that the request does not say. */
function Switches({ name, values, value, set }: SwitchesProps): VNode {
  const title = name.startsWith(CONDITION) ? name.slice(CONDITION.length) : name;
  const button = (text: string, own: string | undefined): VNode => (
    <button key={text} type="button" aria-pressed={value === own} title={text} onClick={() => set(own)}>
      {text}
    </button>
  );
  return (
    <fieldset>
      <legend class="mono">{title}</legend>
      {button("any", undefined)}
      {values.map((each) => button(each, each))}
    </fieldset>
  );
}

/** Assumes something that the outcomes do not offer, such as `response=503`. */
function More({ add }: { readonly add: (name: string, value: string) => void }): VNode {
  const submit = (event: TargetedEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("assumption")).trim();
    const at = text.indexOf("=");
    if (at > 0) add(text.slice(0, at), text.slice(at + 1));
  };
  return (
    <form onSubmit={submit}>
      <input
        name="assumption"
        class="mono"
        aria-label="Assume, as NAME=VALUE"
        placeholder={'response=503, jwt={"sub":"a"} …'}
        pattern="[^=]+=.+"
        title="NAME=VALUE, as for --assume of tgctl explain"
        spellcheck={false}
      />{" "}
      <button type="submit">Assume</button>
    </form>
  );
}

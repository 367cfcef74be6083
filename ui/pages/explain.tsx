import { type Signal, useSignal } from "@preact/signals";
import type { TargetedEvent, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ListenerState } from "../../src/admin/plane/answers.ts";
import { counted } from "../../src/base/counted.ts";
import { CONDITION } from "../../src/rehearsal/condition.ts";
import type { Explanation } from "../../src/rehearsal/explanation.ts";
import type { BadPart } from "../../src/rehearsal/facts.ts";
import { useAnswer } from "../answer.ts";
import type { AskError } from "../ask.ts";
import {
  addressOf,
  type Draft,
  draftOf,
  draftOfQuestion,
  questionOf,
  requestKey,
  urlAt,
  valueText,
} from "../explain-question.ts";
import type { PageProps } from "../page.ts";
import { HeaderRows } from "../parts/header-rows.tsx";
import { Labeled } from "../parts/labeled.tsx";
import { Outcome } from "../parts/outcome.tsx";
import { Problem } from "../parts/problem.tsx";
import { hashOf } from "../place.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

interface Asked {
  readonly draft: Draft;
  /** How often the form was sent: also the same question may have another answer by now. */
  readonly times: number;
}

/** What would happen to a request: a form with its facts, what is assumed, and every outcome. Nothing is sent. */
export function Explain({ place: { query } }: PageProps): VNode {
  const id = query.get("id");
  return (
    <>
      <h1>What would happen</h1>
      {id === null ? <WhatIf query={query} /> : <Recorded key={id} id={id} />}
    </>
  );
}

/** Fills the form from the record of a request. */
function Recorded({ id }: { readonly id: string }): VNode {
  const { answer, problem } = useAnswer("/explain", { body: { id } }, id);
  const question = answer?.question;
  useEffect(() => {
    if (question !== undefined) location.replace(addressOf(draftOfQuestion(question)).hash);
  }, [question]);
  return (
    <>
      <Problem problem={problem} />
      {answer !== undefined && question === undefined ? (
        <p>
          The record {id} has no whole request. <a href={hashOf("/explain")}>Write one.</a>
        </p>
      ) : null}
    </>
  );
}

function WhatIf({ query }: { readonly query: URLSearchParams }): VNode {
  // The address has the same, without secrets.
  const asked = useSignal<Asked>({ draft: draftOf(query), times: 0 });
  const problem = useSignal<AskError | undefined>(undefined);
  useEffect(() => {
    const draft = draftOf(query);
    if (addressOf(draft).hash !== addressOf(asked.value.draft).hash) asked.value = { ...asked.value, draft };
  }, [query]);
  const { draft, times } = asked.value;
  const { leftOut } = addressOf(draft);
  const put = (next: Draft, more = 0): void => {
    asked.value = { draft: next, times: times + more };
    const { hash } = addressOf(next);
    if (hash !== location.hash) location.hash = hash;
  };
  return (
    <>
      <Form draft={draft} problem={problem.value} put={(next) => put(next, 1)} />
      {leftOut.length === 0 ? null : (
        <p class="quiet">
          The address of this page leaves out secrets: {leftOut.join(", ")}. Whoever opens it gets the answer without
          them.
        </p>
      )}
      {draft.url === "" ? (
        <p class="quiet">The gateway rehearses the request with its own code. No backend or service gets anything.</p>
      ) : (
        <Answer key={requestKey(draft)} draft={draft} times={times} put={put} problem={problem} />
      )}
    </>
  );
}

const FIELDS = ["method", "url", "body", "source", "version", "certificate"] as const;
type Field = (typeof FIELDS)[number] | "headers";

/** The field of the form that a problem is about. */
function fieldOf(problem: AskError | undefined): Field | undefined {
  const about = problem?.about;
  return about !== undefined && "request" in about
    ? ([...FIELDS, "headers"] as const).find((name) => name === about.request)
    : undefined;
}

/** The assumption that a problem is about, with what can be assumed instead. */
function assumptionOf(problem: AskError | undefined): Extract<BadPart, { assume: string }> | undefined {
  const about = problem?.about;
  return about !== undefined && "assume" in about ? about : undefined;
}

/** The id of what is wrong with a field. */
const PROBLEM = "explain-problem";

interface FormProps {
  readonly draft: Draft;
  readonly problem: AskError | undefined;
  readonly put: (draft: Draft) => void;
}

/** The facts of the request. Enter in a line, or the button, asks. */
function Form({ draft, problem, put }: FormProps): VNode {
  const form = useRef<HTMLFormElement>(null);
  const headers = useSignal(draft.headers);
  const listener = useSignal("");
  const url = (): HTMLInputElement | undefined => {
    const element = form.current?.elements.namedItem("url");
    return element instanceof HTMLInputElement ? element : undefined;
  };
  // What is typed and not asked stays until the address names another request.
  useEffect(() => {
    headers.value = draft.headers;
    if (url()?.value.trim() !== draft.url) listener.value = "";
    for (const name of FIELDS) {
      const element = form.current?.elements.namedItem(name);
      if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) element.value = draft[name];
      if (element instanceof HTMLSelectElement) element.value = draft[name];
    }
  }, [requestKey(draft)]);
  const submit = (event: TargetedEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = (name: (typeof FIELDS)[number]): string => String(data.get(name) ?? "").replaceAll("\r\n", "\n");
    put({
      ...draft,
      method: text("method").trim(),
      url: text("url").trim(),
      headers: headers.value,
      body: text("body"),
      source: text("source").trim(),
      version: text("version"),
      certificate: text("certificate").trim(),
    });
  };
  const wrong = fieldOf(problem);
  const said = (name: Field) => ({ problem: wrong === name ? problem : undefined, problemId: PROBLEM });
  const field = (name: Field) => ({
    name,
    spellcheck: false,
    ...(wrong === name && { "aria-invalid": true, "aria-describedby": PROBLEM }),
  });
  const { body, source, version, certificate } = draft;
  const isOpen = body !== "" || source !== "" || version !== "" || certificate !== "";
  return (
    <form class="explain" ref={form} onSubmit={submit}>
      <Labeled {...said("method")} name="Method">
        <input {...field("method")} placeholder="GET" list="methods" size={8} />
        <datalist id="methods">
          {METHODS.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      </Labeled>
      <Labeled {...said("url")} name="URL" wide>
        <input
          {...field("url")}
          placeholder="http://shop.example/cart"
          required
          onInput={() => {
            listener.value = "";
          }}
        />
      </Labeled>
      <Listeners
        chosen={listener.value}
        choose={(each) => {
          const input = url();
          listener.value = each.key;
          if (input !== undefined) input.value = urlAt(each, input.value) ?? input.value;
        }}
      />
      <HeaderRows
        rows={headers.value}
        change={(rows) => {
          headers.value = rows;
        }}
        problem={said("headers").problem}
      />
      <details open={isOpen}>
        <summary>Body, client, version</summary>
        <div class="explain">
          <Labeled {...said("body")} name="Body" wide>
            <textarea {...field("body")} rows={3} />
          </Labeled>
          <Labeled {...said("source")} name="Client address">
            <input {...field("source")} placeholder="127.0.0.1" />
          </Labeled>
          <Labeled {...said("version")} name="HTTP version">
            <select {...field("version")}>
              <option value="">as negotiated</option>
              <option value="1.1">1.1</option>
              <option value="2">2</option>
            </select>
          </Labeled>
          <Labeled {...said("certificate")} name="Client certificate and key, PEM" wide>
            <textarea {...field("certificate")} rows={2} />
          </Labeled>
        </div>
      </details>
      <button type="submit">Explain</button>
    </form>
  );
}

interface ListenersProps {
  /** The key of the listener that the URL was written for; empty: none. */
  readonly chosen: string;
  readonly choose: (listener: ListenerState) => void;
}

/** Writes the URL for a listener: the host and port of a request decide which one gets it. */
function Listeners({ chosen, choose }: ListenersProps): VNode | null {
  const { answer } = useAnswer("/overview", {}, "");
  const all = (answer?.listeners ?? []).filter(({ address }) => address !== null);
  if (all.length === 0) return null;
  return (
    <Labeled name="At listener">
      <select
        name="listener"
        value={chosen}
        onChange={({ currentTarget: { value } }) => {
          const listener = all.find(({ key }) => key === value);
          if (listener !== undefined) choose(listener);
        }}
      >
        <option value="">as the URL says</option>
        {all.map(({ key, name, protocol, hostname, address }) => (
          <option key={key} value={key}>
            {name} · {protocol} {hostname} {address}
          </option>
        ))}
      </select>
    </Labeled>
  );
}

/** The value to assume; undefined leaves it open. */
type Change = readonly [name: string, value: string | undefined];

interface AnswerProps {
  readonly draft: Draft;
  readonly times: number;
  readonly put: (draft: Draft) => void;
  readonly problem: Signal<AskError | undefined>;
}

/** What the outcomes of a request depend on, as switches, and the outcomes side by side. */
function Answer({ draft, times, put, problem }: AnswerProps): VNode {
  const question = questionOf(draft);
  const answered = useAnswer("/explain", { body: question }, JSON.stringify([question, times]));
  useEffect(() => {
    problem.value = answered.problem;
    // The next answer may have a problem before this one's cleanup runs.
    return () => {
      if (problem.value === answered.problem) problem.value = undefined;
    };
  }, [answered.problem]);
  const choices = useChoices(answered.answer);
  const { assume } = draft;
  const change = (changes: readonly Change[]): void => {
    const next = new Map(assume);
    for (const [name, value] of changes)
      if (value === undefined) next.delete(name);
      else next.set(name, value);
    put({ ...draft, assume: next });
  };
  const outcomes = answered.answer?.outcomes ?? [];
  const shown = outcomes.filter(({ given }) =>
    [...assume].every(
      ([name, value]) => !name.startsWith(CONDITION) || given[name] === undefined || valueText(given[name]) === value,
    ),
  );
  const wrong = assumptionOf(answered.problem);
  const isSaid = fieldOf(answered.problem) !== undefined || (wrong !== undefined && assume.has(wrong.assume));
  return (
    <>
      <section class="switches" aria-label="Assumptions">
        {[...new Set([...choices.keys(), ...assume.keys()])].map((name) => (
          <Switches
            key={name}
            name={name}
            values={[...new Set([...(choices.get(name) ?? []), ...(assume.has(name) ? [assume.get(name) ?? ""] : [])])]}
            value={assume.get(name)}
            problem={wrong?.assume === name ? answered.problem : undefined}
            change={change}
          />
        ))}
        <More add={(name, value) => change([[name, value]])} />
      </section>
      <Problem problem={isSaid ? undefined : answered.problem} />
      {answered.answer === undefined ? null : (
        <p class="quiet" role="status">
          {sayHowMany(shown.length, answered.answer)}
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

/** How many outcomes there are, and why some are not shown. */
function sayHowMany(shown: number, { outcomes, omitted = 0, generation }: Explanation): string {
  const hidden = outcomes.length - shown;
  const all = counted(outcomes.length, "outcome");
  return [
    omitted === 0
      ? `${all} with configuration ${generation}, which is in effect.`
      : `There are at least ${outcomes.length + omitted} outcomes; ${all} were tried. Assume something to see others.`,
    ...(hidden === 0 ? [] : [`${counted(hidden, "outcome")} in which a condition has another result: not shown.`]),
  ].join(" ");
}

/** The choices that the outcomes of a request had so far, with their values: an assumption leaves only one of them. */
function useChoices(answer: Explanation | undefined): ReadonlyMap<string, ReadonlySet<string>> {
  const { current } = useRef(new Map<string, Set<string>>());
  for (const { given } of answer?.outcomes ?? [])
    for (const [name, value] of Object.entries(given))
      current.set(name, (current.get(name) ?? new Set()).add(valueText(value)));
  return current;
}

interface SwitchesProps {
  readonly name: string;
  readonly values: readonly string[];
  /** undefined: left open. */
  readonly value: string | undefined;
  /** What is wrong with the value. */
  readonly problem: AskError | undefined;
  readonly change: (changes: readonly Change[]) => void;
}

/** What is assumed about one thing that the request does not say. */
function Switches({ name, values, value, problem, change }: SwitchesProps): VNode {
  const title = name.startsWith(CONDITION) ? name.slice(CONDITION.length) : name;
  const { ways = [] } = assumptionOf(problem) ?? {};
  const button = (text: string, own: string | undefined): VNode => (
    <button key={text} type="button" aria-pressed={value === own} title={text} onClick={() => change([[name, own]])}>
      {text}
    </button>
  );
  return (
    <fieldset>
      <legend class="mono">{title}</legend>
      {button("any", undefined)}
      {values.map((each) => button(each, each))}
      <Problem problem={problem} />
      {ways.map(([other, instead]) => (
        <button
          key={`${other}=${instead}`}
          type="button"
          onClick={() =>
            change([
              [name, undefined],
              [other, instead],
            ])
          }
        >
          {other}={instead}
        </button>
      ))}
    </fieldset>
  );
}

/** Assumes something that the outcomes do not offer, such as `response=503`. */
function More({ add }: { readonly add: (name: string, value: string) => void }): VNode {
  const submit = (event: TargetedEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("assumption")).trim();
    const at = text.indexOf("=");
    if (at <= 0) return;
    add(text.slice(0, at), text.slice(at + 1));
    event.currentTarget.reset();
  };
  return (
    <form onSubmit={submit}>
      <input
        name="assumption"
        class="mono"
        aria-label="Assume, as NAME=VALUE"
        placeholder={'response=503, jwt={"sub":"a"} …'}
        size={32}
        pattern="[^=]+=.+"
        title="NAME=VALUE, as for --assume of tgctl explain"
        spellcheck={false}
      />{" "}
      <button type="submit">Assume</button>
    </form>
  );
}

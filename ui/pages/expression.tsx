import { type Signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { isScope, SCOPES, type Scope } from "../../src/cel/variables/scopes.ts";
import { evaluatedLines } from "../../src/report/evaluated.ts";
import { useAnswer } from "../answer.ts";
import { addressWords, assumptionsIn, type Draft, draftOf, questionOf } from "../explain-question.ts";
import { lackText } from "../lack-text.ts";
import type { PageProps } from "../page.ts";
import { ExpressionField } from "../parts/expression-field.tsx";
import { HeaderRows } from "../parts/header-rows.tsx";
import { Labeled } from "../parts/labeled.tsx";
import { Problem } from "../parts/problem.tsx";
import { hashOf } from "../place.ts";

/** Milliseconds without another key before the gateway is asked. */
const PAUSE = 150;
/** Levels that expression.css indents. */
const DEEPEST = 5;

/** What is on the bench. */
interface Bench {
  readonly expression: string;
  readonly scope: Scope;
  /** Of a recorded request; empty: the one that is written in the draft. */
  readonly id: string;
  readonly draft: Draft;
}

/** An expression, a request, and the value of every part while one types. */
export function Expression({ place: { query } }: PageProps): VNode {
  // Typing replaces the address without another place; another link is another bench.
  return <ExpressionBench key={query.toString()} first={benchOf(query)} />;
}

function ExpressionBench({ first }: { readonly first: Bench }): VNode {
  const bench = useSignal(first);
  const asked = useSignal(first);
  const wrong = useSignal(false);
  const { scope } = bench.value;
  const { hash, leftOut } = addressOf(asked.value);
  useEffect(() => {
    const timer = setTimeout(() => {
      asked.value = bench.value;
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [bench.value]);
  useEffect(() => history.replaceState(null, "", hash), [hash]);
  const put = (change: Partial<Bench>): void => {
    bench.value = { ...bench.value, ...change };
  };
  const write = (change: Partial<Draft>): void => put({ draft: { ...bench.value.draft, ...change } });
  return (
    <>
      <h1>Expression</h1>
      <div class="bench">
        <section aria-label="The expression and its value">
          <Line bench={bench.value} put={put} wrong={wrong.value} />
          {asked.value.expression.trim() === "" ? (
            <p class="quiet">The value of every part appears here as you type.</p>
          ) : (
            <Values bench={asked.value} wrong={wrong} />
          )}
          <fieldset>
            <legend>For which request</legend>
            <Labeled name="Id of a recorded request">
              <input defaultValue={first.id} onInput={({ currentTarget }) => put({ id: currentTarget.value.trim() })} />
            </Labeled>
            <RequestFields
              first={first.draft}
              headers={bench.value.draft.headers}
              write={write}
              recorded={bench.value.id !== ""}
            />
          </fieldset>
          {leftOut.length === 0 ? null : (
            <p class="quiet">The address of this page leaves out secrets: {leftOut.join(", ")}.</p>
          )}
        </section>
        <Names scope={scope} />
      </div>
    </>
  );
}

interface LineProps {
  readonly bench: Bench;
  /** The expression has a mistake, which is said below it. */
  readonly wrong: boolean;
  readonly put: (change: Partial<Bench>) => void;
}

/** The expression, and where it stands. */
function Line({ bench: { expression, scope }, wrong, put }: LineProps): VNode {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <div class="bench-line">
      <ExpressionField
        key={scope}
        field={field}
        scope={scope}
        value={expression}
        label="Expression"
        placeholder='request.path.startsWith("/cart") && jwt.sub == "alice"'
        problemId={wrong ? PROBLEM : undefined}
        changed={(text) => put({ expression: text })}
      />
      <label>
        <span class="quiet">for</span>{" "}
        <select
          value={scope}
          onChange={({ currentTarget }) => isScope(currentTarget.value) && put({ scope: currentTarget.value })}
        >
          {Object.entries(SCOPES).map(([name, about]) => (
            <option key={name} value={name}>
              {about}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

const PROBLEM = "expression-problem";

interface ValuesProps {
  readonly bench: Bench;
  /** Learns whether the expression has a mistake. */
  readonly wrong: Signal<boolean>;
}

/** The value of each part, or what is wrong. */
function Values({ bench, wrong }: ValuesProps): VNode {
  const question = questionFor(bench);
  const { answer, problem } = useAnswer("/expression", { body: question }, JSON.stringify(question));
  const lines = answer === undefined ? [] : evaluatedLines(bench.expression, answer);
  const message = answer?.problem?.message;
  useEffect(() => {
    wrong.value = message !== undefined;
    return () => {
      wrong.value = false;
    };
  }, [message]);
  return (
    <>
      <Problem problem={problem} />
      <div id={PROBLEM} role="status">
        {message === undefined ? null : (
          <section class="problem" aria-label="What is wrong" tabIndex={0}>
            <pre>{message}</pre>
          </section>
        )}
        {answer?.needs?.map((need) => (
          <p key={need.what} class="warn">
            not known: {lackText(need)}
          </p>
        ))}
      </div>
      {lines.length === 0 ? null : (
        <table class="evaluated">
          <thead>
            <tr>
              <th>part</th>
              <th>value</th>
              <th>type</th>
            </tr>
          </thead>
          <tbody>
            {lines.map(({ depth, text, value, type }, index) => (
              <tr key={index}>
                <td class={`mono depth${Math.min(depth, DEEPEST)}`}>{text}</td>
                <td class={`mono ${type === undefined ? "warn" : toneOf(value)}`}>{value}</td>
                <td class="quiet">{type ?? ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function toneOf(value: string): string {
  return value === "true" ? "good" : value === "false" ? "bad" : "";
}

interface RequestFieldsProps {
  readonly first: Draft;
  readonly headers: Draft["headers"];
  readonly write: (change: Partial<Draft>) => void;
  /** The request is recorded: only what a record does not have can be written. */
  readonly recorded: boolean;
}

function RequestFields({ first, headers, write, recorded }: RequestFieldsProps): VNode {
  const assumed = [...first.assume].map(([name, value]) => `${name}=${value}`).join("\n");
  return (
    <>
      <Labeled name="Method">
        <input
          size={8}
          placeholder="GET"
          disabled={recorded}
          defaultValue={first.method}
          onInput={({ currentTarget }) => write({ method: currentTarget.value.trim() })}
        />
      </Labeled>
      <Labeled name="URL" wide>
        <input
          placeholder="http://shop.example/cart"
          disabled={recorded}
          defaultValue={first.url}
          onInput={({ currentTarget }) => write({ url: currentTarget.value.trim() })}
        />
      </Labeled>
      <HeaderRows rows={headers} change={(rows) => write({ headers: rows })} />
      <Labeled name="Body" wide>
        <textarea
          rows={3}
          defaultValue={first.body}
          onInput={({ currentTarget }) => write({ body: currentTarget.value })}
        />
      </Labeled>
      <Labeled name="Client address">
        <input
          placeholder="127.0.0.1"
          defaultValue={first.source}
          onInput={({ currentTarget }) => write({ source: currentTarget.value.trim() })}
        />
      </Labeled>
      <Labeled name="Client certificate, PEM" wide>
        <textarea rows={1} onInput={({ currentTarget }) => write({ certificate: currentTarget.value.trim() })} />
      </Labeled>
      <Labeled name="Assumptions, one per line" wide>
        <textarea
          rows={3}
          placeholder={'jwt={"sub":"alice"}\nresponse=503'}
          defaultValue={assumed}
          onInput={({ currentTarget }) => write({ assume: assumptionsIn(currentTarget.value) })}
        />
      </Labeled>
    </>
  );
}

/** The variables and functions of a scope, with a search. */
function Names({ scope }: { readonly scope: Scope }): VNode {
  const search = useSignal("");
  const { answer, problem } = useAnswer("/expression/names", { query: { scope } }, scope);
  const has = (...texts: readonly string[]): boolean =>
    texts.some((text) => text.toLowerCase().includes(search.value.trim().toLowerCase()));
  const variables = (answer?.variables ?? []).filter(({ name }) => has(name));
  const functions = (answer?.functions ?? []).filter(({ name, group }) => has(name, group));
  const groups = Map.groupBy(functions, ({ group }) => group);
  return (
    <section class="names" aria-label="Variables and functions">
      <input
        type="search"
        aria-label="Search variables and functions"
        placeholder="search variables and functions"
        onInput={({ currentTarget }) => {
          search.value = currentTarget.value;
        }}
      />
      <Problem problem={problem} />
      {variables.length === 0 ? null : <h2>Variables</h2>}
      <dl>
        {variables.map(({ name, type }) => (
          <Entry key={name} name={name} about={type} />
        ))}
      </dl>
      {[...groups].map(([group, members]) => (
        <div key={group}>
          <h2>{group}</h2>
          <dl>
            {members.map(({ name, of, signatures, example: [expression = "", value = ""] = [] }) => (
              <Entry
                key={`${of?.join()} ${name}`}
                name={`${of === undefined ? "" : "."}${name}${signatures.length === 1 ? signatures[0] : "(…)"}`}
                about={value === "" ? expression : `${expression} → ${value}`}
              />
            ))}
          </dl>
        </div>
      ))}
    </section>
  );
}

function Entry({ name, about }: { readonly name: string; readonly about: string }): VNode {
  return (
    <div>
      <dt class="mono">{name}</dt>
      <dd class="mono quiet">{about}</dd>
    </div>
  );
}

function benchOf(query: URLSearchParams): Bench {
  const scope = query.get("scope") ?? "";
  return {
    expression: query.get("expression") ?? "",
    scope: isScope(scope) ? scope : "request",
    id: query.get("id") ?? "",
    draft: draftOf(query),
  };
}

function addressOf({ expression, scope, id, draft }: Bench): {
  readonly hash: string;
  readonly leftOut: readonly string[];
} {
  const { words, leftOut } = addressWords(draft);
  const own = [
    ["expression", expression],
    ["scope", scope === "request" ? "" : scope],
    ["id", id],
  ] as const;
  return { hash: hashOf("/expression", [...own, ...words]), leftOut };
}

/** The body of `POST /expression`. */
function questionFor({ expression, scope, id, draft }: Bench): object {
  const { request, assume } = questionOf(draft);
  const { url, ...known } = request;
  if (id !== "") return { expression, scope, id, request: known, assume };
  return url === "" ? { expression, scope, assume } : { expression, scope, request, assume };
}

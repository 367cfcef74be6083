import { useSignal } from "@preact/signals";
import type { TargetedEvent, VNode } from "preact";
import type { Step } from "../../src/trace/steps.ts";
import { useAnswer } from "../answer.ts";
import { addressOf, type Draft, EMPTY_DRAFT, headersIn, questionOf } from "../explain-question.ts";
import { routeHash } from "../place.ts";
import { Problem } from "./problem.tsx";
import { StepTree } from "./step-tree.tsx";

/** Asks which route would get a request, and shows why the others would not. The gateway rehearses it; nothing is sent. */
export function WhichRoute(): VNode {
  const asked = useSignal<Draft>(EMPTY_DRAFT);
  const submit = (event: TargetedEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = (name: string): string => String(data.get(name) ?? "").trim();
    asked.value = { ...EMPTY_DRAFT, method: text("method"), url: text("url"), headers: headersIn(text("headers")) };
  };
  const clear = (): void => {
    asked.value = EMPTY_DRAFT;
  };
  return (
    <section class="which" aria-label="Which route would get a request">
      <form class="tools" onSubmit={submit} onReset={clear}>
        <input name="method" aria-label="Method" placeholder="GET" size={6} spellcheck={false} />
        <input
          name="url"
          type="url"
          required
          aria-label="URL"
          placeholder="which route would get http://shop.example/cart"
          spellcheck={false}
        />
        <textarea name="headers" rows={1} aria-label="Header fields" placeholder="x-tier: gold" spellcheck={false} />
        <button type="submit">Which route</button>
        {asked.value.url === "" ? null : <button type="reset">Close</button>}
      </form>
      {asked.value.url === "" ? null : <Answer draft={asked.value} />}
    </section>
  );
}

function Answer({ draft }: { readonly draft: Draft }): VNode {
  const question = questionOf(draft);
  const { answer, problem } = useAnswer("/explain", { body: question }, JSON.stringify(question));
  if (answer === undefined) return <Problem problem={problem} />;
  const ways = answer.outcomes.map(({ steps }) => steps.filter(({ kind }) => SHOWN.has(kind)));
  // Outcomes differ in what services say and which backend is chosen, too.
  const different = [...new Map(ways.map((steps) => [JSON.stringify(steps), steps])).values()];
  return (
    <div class="answer" role="status">
      {different.map((steps, index) => (
        <Way key={index} steps={steps} />
      ))}
      <a href={addressOf(draft).hash}>What would happen to it</a>
    </div>
  );
}

const SHOWN: ReadonlySet<Step["kind"]> = new Set(["challenge", "listener", "route", "group"]);

/** One of the ways that a request may take through the routes. */
function Way({ steps }: { readonly steps: readonly Step[] }): VNode {
  // A route that delegates is followed by that of the group.
  const winner = steps.findLast(({ kind, result, key }) => kind === "route" && result === "yes" && key !== undefined);
  return (
    <>
      <p>
        {winner?.key === undefined ? (
          <strong class="bad">No route gets it</strong>
        ) : (
          <>
            <strong class="good">
              <a href={routeHash(winner.key)}>{winner.name}</a>
            </strong>{" "}
            gets it
          </>
        )}
      </p>
      <StepTree steps={steps} />
    </>
  );
}

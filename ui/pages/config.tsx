import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import type { ConfigPart, ConfigPartsAnswer } from "../../src/admin/plane/config-parts.ts";
import type { ConfigStatus } from "../../src/admin/plane/config-status.ts";
import { counted } from "../../src/base/counted.ts";
import { formatOrigin } from "../../src/base/origin.ts";
import { useAnswer } from "../answer.ts";
import { type AskError, ask } from "../ask.ts";
import type { PageProps } from "../page.ts";
import { ConfigState } from "../parts/config-state.tsx";
import { Difference } from "../parts/difference.tsx";
import { LogLevels } from "../parts/log-levels.tsx";
import { Origin } from "../parts/origin.tsx";
import { Problem } from "../parts/problem.tsx";
import { ValueTree } from "../parts/value-tree.tsx";
import { hashOf, queryNow } from "../place.ts";
import { usePoll } from "../poll.ts";

/** Parts of a page, and milliseconds between two questions. */
const LIMIT = 100;
const PAUSE = 3000;

/** What the address says; `page` is empty where the answer says it. */
interface Words {
  readonly search: string;
  /** Only parts where a policy of this kind is in effect. */
  readonly policy: string;
  readonly at: string;
  readonly page: string;
}

/** The configuration in effect, part by part, each with what is in it and where it is written. */
export function Config({ place: { query } }: PageProps): VNode {
  const words = wordsOf(query);
  const { search, policy, at } = words;
  const status = useSignal<ConfigStatus | undefined>(undefined);
  const lost = useSignal<AskError | undefined>(undefined);
  usePoll(
    "",
    PAUSE,
    async (signal) => {
      status.value = await ask("/config/status", { signal });
    },
    (error) => {
      lost.value = error;
    },
  );
  const { generation } = status.value ?? {};
  const key = JSON.stringify([words, generation]);
  const { answer, problem } = useAnswer("/config/parts", { query: { ...words, limit: LIMIT } }, key);
  return (
    <>
      <h1 class="hidden">Configuration</h1>
      <div class="config-state">
        {status.value === undefined ? null : <ConfigState status={status.value} />}
        {status.value === undefined || status.value.synchronized ? null : <OnDisk status={status.value} />}
        <LogLevels />
      </div>
      <search class="tools">
        <input
          type="search"
          aria-label="Search the configuration"
          placeholder="search: name, host, path, policy, value"
          defaultValue={search}
          spellcheck={false}
          // Each letter asks, but the history keeps only the place.
          onInput={({ currentTarget: { value } }) =>
            location.replace(linkTo({ ...wordsOf(queryNow()), search: value, page: "" }))
          }
        />
        {policy === "" ? null : (
          <span>
            with <a href={hashOf(`/policies/${policy}`)}>{policy}</a> ·{" "}
            <a href={linkTo({ ...words, policy: "", page: "" })}>all</a>
          </span>
        )}
      </search>
      <Problem problem={lost.value ?? problem} />
      {answer === undefined ? null : (
        <>
          <div class="config">
            <Parts answer={answer} words={words} />
            <Chosen answer={answer} at={at} />
          </div>
          <Pages answer={answer} words={words} />
        </>
      )}
    </>
  );
}

/** How the file that is not in effect differs from what is. */
function OnDisk({ status: { generation, loadedAt, lastError } }: { readonly status: ConfigStatus }): VNode {
  const { answer, problem } = useAnswer(
    "/config/difference",
    {},
    JSON.stringify([generation, loadedAt, lastError?.at]),
  );
  return (
    <>
      <h2>From what is in effect to the file</h2>
      <Problem problem={problem} />
      {answer === undefined ? null : "unknown" in answer ? (
        <p class="quiet">Not known: {answer.unknown}.</p>
      ) : answer.hunks.length === 0 ? (
        <p class="quiet">The file has the same text; the cause is outside of it.</p>
      ) : (
        <Difference hunks={answer.hunks} />
      )}
    </>
  );
}

function wordsOf(query: URLSearchParams): Words {
  const { search = "", policy = "", at = "", page = "" } = Object.fromEntries(query);
  return { search, policy, at, page };
}

function linkTo({ search, policy, at, page }: Words): string {
  return hashOf("/config", { search, policy, at, page });
}

/** Levels that config.css indents. */
const DEEPEST = 2;

function Parts({
  answer: { parts, page, chosen },
  words,
}: {
  readonly answer: ConfigPartsAnswer;
  readonly words: Words;
}): VNode {
  return (
    <section class="parts" tabIndex={0} aria-label="Parts">
      <ol>
        {parts.map((part) => (
          <li key={part.key} class={`level${Math.min(part.depth, DEEPEST)}`}>
            <a
              href={linkTo({ ...words, at: part.key, page: String(page) })}
              aria-current={part.key === chosen?.key ? "true" : undefined}
            >
              <span>
                <Name part={part} />
              </span>
              {part.origin === undefined ? null : (
                <span class="quiet">
                  <bdi>{formatOrigin(part.origin)}</bdi>
                </span>
              )}
            </a>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Name({ part: { kind, name } }: { readonly part: ConfigPart }): VNode {
  return (
    <>
      <span class="quiet">{kind}</span> {name}
    </>
  );
}

function Chosen({ answer: { chosen }, at }: { readonly answer: ConfigPartsAnswer; readonly at: string }): VNode {
  return (
    <section class="part" tabIndex={0} aria-label="Part">
      {chosen === undefined ? (
        <p class="quiet">
          {at === ""
            ? "Choose a part to see what is in it."
            : `No part of the configuration in effect is written at ${at}.`}
        </p>
      ) : (
        <>
          <h2>
            <Name part={chosen} />
          </h2>
          {chosen.origin === undefined ? null : (
            <p>
              written at <Origin origin={chosen.origin} />
            </p>
          )}
          <ValueTree key={chosen.key} value={chosen.value} />
        </>
      )}
    </section>
  );
}

function Pages({ answer, words }: { readonly answer: ConfigPartsAnswer; readonly words: Words }): VNode {
  const { found, total, parts, page } = answer;
  const before = (page - 1) * LIMIT;
  const toPage = (to: number, name: string): VNode => <a href={linkTo({ ...words, page: String(to) })}>{name}</a>;
  return (
    <nav class="status quiet" aria-label="Pages of parts">
      {found === total ? counted(total, "part") : `${found} of ${counted(total, "part")}`}
      {parts.length < found ? ` · ${before + 1} to ${before + parts.length}` : ""}
      {page > 1 ? <> · {toPage(page - 1, "previous")}</> : null}
      {before + parts.length < found ? <> · {toPage(page + 1, "next")}</> : null}
    </nav>
  );
}

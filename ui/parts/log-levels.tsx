import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import type { LogLevels as Levels } from "../../src/admin/plane/log-levels.ts";
import { LOG_LEVELS } from "../../src/base/log-filter.ts";
import { useAnswer } from "../answer.ts";
import { type AskError, ask, lasting } from "../ask.ts";
import { Labeled } from "./labeled.tsx";
import { Problem } from "./problem.tsx";

/** Which lines the gateway writes to its log, with a field for the level of each module. */
export function LogLevels(): VNode {
  const changed = useSignal<Levels | undefined>(undefined);
  const refused = useSignal<AskError | undefined>(undefined);
  const { answer, problem } = useAnswer("/logging", {}, "");
  const change = async (query: { readonly level?: string; readonly reset?: true }): Promise<void> => {
    try {
      changed.value = await ask("/logging", { query, changes: true });
      refused.value = undefined;
    } catch (error) {
      refused.value = lasting(error);
    }
  };
  const { filters = [], level = null, modules = [] } = changed.value ?? answer ?? {};
  return (
    <details class="log-levels">
      <summary>
        Log <code>{filters.join(" or ")}</code>
      </summary>
      <Problem problem={refused.value ?? problem} />
      <div class="levels">
        <Level name="all modules" level={level} choose={(level) => change({ level })} />
        {modules.map(({ name, level, own }) => (
          <Level
            key={name}
            name={name}
            level={level}
            inherited={!own}
            choose={(level) => change({ level: `${name}=${level}` })}
          />
        ))}
      </div>
      <p class="quiet">
        <button type="button" onClick={() => void change({ reset: true })}>
          As at the start
        </button>{" "}
        Changes take effect at once and last until the gateway restarts.
      </p>
    </details>
  );
}

interface LevelProps {
  readonly name: string;
  /** null: replicas have different ones. */
  readonly level: Levels["level"];
  /** The module has no level of its own. */
  readonly inherited?: boolean;
  readonly choose: (level: string) => Promise<void>;
}

function Level({ name, level, inherited = false, choose }: LevelProps): VNode {
  return (
    <Labeled name={name}>
      <select
        class={inherited ? "quiet" : ""}
        value={level ?? ""}
        onChange={({ currentTarget: { value } }) => void choose(value)}
      >
        {level === null ? <option value="">differs</option> : null}
        {LOG_LEVELS.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </Labeled>
  );
}

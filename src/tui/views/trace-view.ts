import { messageOf } from "../../base/errors.ts";
import type { Fields } from "../../base/fields.ts";
import type { Followed } from "../../cli/trace/followed.ts";
import { saveNewFile } from "../../cli/trace/save.ts";
import type { TraceItem, TraceSource } from "../../cli/trace/source.ts";
import type { TraceView } from "../../cli/trace/view.ts";
import { detailText } from "../../report/detail.ts";
import { curlCommand } from "../../report/export/curl.ts";
import { withoutSecrets } from "../../report/export/without-secrets.ts";
import { rowsOf } from "../../report/rows.ts";
import { harmless } from "../../report/text.ts";
import { type FollowAction, initialFollow, reduceFollow, settled } from "../follow-reducer.ts";
import { followKeys, keysToActions } from "../keys.ts";
import { type Action, detail, initialState, reduce, type State } from "../reducer.ts";
import { FollowScreen } from "./follow-screen.ts";
import { type Effect, fullScreen } from "./full-screen.ts";
import { clipboardSequence } from "./terminal.ts";
import { TraceScreen } from "./trace-screen.ts";

/** The terminal UI on this process's terminal. */
export const traceView: TraceView = {
  show: (source, process) =>
    fullScreen<State, Action>(
      {
        initial: (size) => initialState(harmless(source.title), size, source.revealed),
        reduce,
        settle: (state) => state,
        keys: keysToActions,
        effect: (command, state, output) => EFFECTS[command](state, output),
        screen: TraceScreen,
        feed: (dispatch) => feed(source, dispatch),
      },
      process,
    ),
  follow: (source, process) =>
    fullScreen(
      {
        initial: (size) => initialFollow(harmless(source.title), size),
        reduce: reduceFollow,
        settle: settled,
        keys: followKeys,
        effect: (command, { trace }, output) => EFFECTS[command](trace, output),
        screen: FollowScreen,
        feed: async (dispatch) => {
          for await (const item of source.items) for (const action of followActions(item)) dispatch(action);
        },
      },
      process,
    ),
};

/** Dispatches the items of the source. Rejects if it fails before the first event; later failures become a row. */
async function feed(source: TraceSource, dispatch: (action: Action) => void): Promise<void> {
  let any = false;
  try {
    for await (const item of source.items) {
      if (item.kind === "event") any = true;
      dispatch(actionOf(item));
    }
  } catch (error) {
    if (!any) throw error;
    dispatch({ type: "problem", text: messageOf(error) });
  }
  dispatch({ type: "ended" });
}

function actionOf(item: TraceItem): Action {
  switch (item.kind) {
    case "event":
      return { type: "events", events: [item.event] };
    case "header":
      return { type: "headed", text: item.text, revealed: item.header.revealed };
    case "progress":
      return { type: "progress", text: item.text };
    case "problem":
      return { type: "problem", text: item.text };
    case "source":
      return { type: "titled", title: harmless(item.text) };
  }
}

function followActions(item: Followed): FollowAction[] {
  switch (item.kind) {
    case "event": {
      const { number, pod = "", raw } = item;
      // The number of the request in the stream of its pod; without it, the events are those of a trace.
      const { request: _, ...event } = item.event;
      return [{ type: "followed", event: { number, pod: harmless(pod), event, length: raw.length } }];
    }
    case "lost": {
      const { number, pod = "", event } = item;
      return [{ type: "followed", event: { number, pod: harmless(pod), event, length: 0 } }];
    }
    case "notice":
      return item.text === undefined ? [] : [{ type: "missing", text: harmless(item.text) }];
    case "progress":
      return [{ type: "missing", text: harmless(item.text) }];
    case "end": {
      const { failure } = item;
      return [{ type: "streamEnded", why: failure === undefined ? "stream complete" : harmless(messageOf(failure)) }];
    }
  }
}

/** Commands with an effect outside the view; each returns the notice that the view shows. */
const EFFECTS: Readonly<Record<Effect, (state: State, output: NodeJS.WriteStream) => string>> = {
  copy: (state, output) => copy(output, "details", detailText(detail(state))),
  copyCurl(state, output) {
    const command = curlCommand(rowsOf(withoutSecrets(eventsOf(state))));
    return command === undefined ? "no request that curl can send" : copy(output, "curl command", command);
  },
  save(state) {
    if (eventsOf(state).length === 0) return "no event to save yet";
    try {
      return `saved as ${saveNewFile(eventsOf(state), state.revealed)}`;
    } catch (error) {
      return messageOf(error);
    }
  },
};

/** The events of the trace so far. */
function eventsOf({ rows }: State): readonly Fields[] {
  return rows.flatMap(({ event, ofClient }) => (ofClient ? [] : [event]));
}

function copy(output: NodeJS.WriteStream, what: string, text: string): string {
  const sequence = clipboardSequence(text);
  if (sequence === undefined) return "clipboard unavailable: more text than terminals accept";
  output.write(sequence);
  return `copied ${what} to clipboard`;
}

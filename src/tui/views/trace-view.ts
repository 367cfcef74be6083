import { openSync } from "node:fs";
import { ReadStream } from "node:tty";
import { type Instance, render } from "ink";
import { createElement as h } from "react";
import { messageOf } from "../../base/errors.ts";
import type { Fields } from "../../base/fields.ts";
import { saveNewFile } from "../../cli/trace/save.ts";
import type { TraceItem, TraceSource, TraceView } from "../../cli/trace/source.ts";
import { detailText } from "../../report/detail.ts";
import { curlCommand } from "../../report/export/curl.ts";
import { withoutSecrets } from "../../report/export/without-secrets.ts";
import { rowsOf } from "../../report/rows.ts";
import { harmless } from "../../report/text.ts";
import { type Command, keysToActions } from "../keys.ts";
import { type Action, detail, initialState, reduce, type State } from "../reducer.ts";
import { clipboardSequence, enterAlternateScreen } from "./terminal.ts";
import { themeOf } from "./theme.ts";
import { TraceScreen, type TraceScreenProps } from "./trace-screen.ts";

/** Milliseconds after SIGTSTP until the view is drawn again if the process was not stopped. */
const NOT_STOPPED_MS = 200;

/** The terminal UI on this process's terminal. The caller has checked that stdout is one. */
export const traceView: TraceView = {
  async show(source, { env, signal }) {
    const input = keyboard();
    const output = process.stdout;
    const quit = Promise.withResolvers<void>();
    let state = initialState(harmless(source.title), sizeOf(output), source.revealed);

    const onInput: TraceScreenProps["onInput"] = (text, key) => {
      for (const action of keysToActions(text, key, state)) {
        if (typeof action === "string") run(action);
        else dispatch(action);
      }
    };
    const theme = themeOf(env.NO_COLOR === undefined || env.NO_COLOR === "");
    const element = () => h(TraceScreen, { state, theme, onInput });

    const failed = Promise.withResolvers<never>();
    let leave = () => {};
    let app: Instance | undefined;
    const mount = () => {
      leave = enterAlternateScreen(output.fd);
      const mounted = render(element(), { stdin: input, stdout: output, exitOnCtrlC: false });
      app = mounted;
      // Rejects only when drawing failed.
      mounted.waitUntilExit().catch(failed.reject);
    };
    const unmount = () => {
      app?.unmount();
      app = undefined;
      leave();
    };

    let drawing = false;
    const dispatch = (action: Action) => {
      state = reduce(state, action);
      if (drawing) return;
      drawing = true;
      // A file of many events is drawn once per turn of the event loop, not once per event.
      setImmediate(() => {
        drawing = false;
        app?.rerender(element());
      });
    };
    const run = (command: Command) => {
      if (command === "quit") quit.resolve();
      // Raw mode turned Ctrl-C into a byte; it keeps its meaning.
      else if (command === "interrupt") process.kill(process.pid, "SIGINT");
      else if (command === "suspend") suspend();
      else dispatch({ type: "noticed", text: EFFECTS[command](state, output) });
    };
    /** Ctrl-Z as the terminal would have sent it: to the whole process group. */
    const suspend = () => {
      unmount();
      process.kill(0, "SIGTSTP");
      // Without job control the process is not stopped, and no SIGCONT follows.
      setTimeout(() => app ?? mount(), NOT_STOPPED_MS);
    };
    /** The shell has written over the screen while the process was stopped. */
    const resumed = () => {
      unmount();
      mount();
      dispatch({ type: "resized", size: sizeOf(output) });
    };
    const resized = () => dispatch({ type: "resized", size: sizeOf(output) });
    const aborted = () => quit.resolve();
    mount();
    output.on("resize", resized);
    process.on("SIGCONT", resumed);
    signal.addEventListener("abort", aborted, { once: true });
    if (signal.aborted) quit.resolve();

    try {
      await Promise.race([
        quit.promise,
        failed.promise,
        // The view stays open after the last event; a source that fails before its first one ends it.
        follow(source, dispatch).then(() => quit.promise),
      ]);
    } finally {
      output.off("resize", resized);
      signal.removeEventListener("abort", aborted);
      process.off("SIGCONT", resumed);
      unmount();
      if (input !== process.stdin) input.destroy();
    }
  },
};

/** Dispatches the items of the source. Rejects if it fails before the first event; later failures become a row. */
async function follow(source: TraceSource, dispatch: (action: Action) => void): Promise<void> {
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
      return { type: "event", event: item.event };
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

/** Where keys come from: standard input, or the terminal itself when standard input holds the trace. */
function keyboard(): ReadStream {
  return process.stdin.isTTY ? process.stdin : new ReadStream(openSync("/dev/tty", "r"));
}

function sizeOf(output: NodeJS.WriteStream): { columns: number; rows: number } {
  return { columns: output.columns, rows: output.rows };
}

/** Commands with an effect outside the view; each returns the notice that the view shows. */
const EFFECTS: Readonly<Record<"copy" | "copyCurl" | "save", (state: State, output: NodeJS.WriteStream) => string>> = {
  copy: (state, output) => copy(output, "details", detailText(detail(state))),
  copyCurl(state, output) {
    const command = curlCommand(rowsOf(withoutSecrets(eventsOf(state))));
    return command === undefined ? "no request that curl can send" : copy(output, "curl command", command);
  },
  save(state) {
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

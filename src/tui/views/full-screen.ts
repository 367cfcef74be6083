import { openSync } from "node:fs";
import { ReadStream } from "node:tty";
import { type Instance, type Key, render } from "ink";
import { type FunctionComponent, createElement as h } from "react";
import type { ViewProcess } from "../../cli/trace/view.ts";
import type { Command } from "../keys.ts";
import type { Size } from "../layout.ts";
import type { KeyAction } from "../reducer.ts";
import { enterAlternateScreen } from "./terminal.ts";
import { themeOf } from "./theme.ts";
import type { ScreenProps } from "./trace-screen.ts";

/** Milliseconds after SIGTSTP until the view is drawn again if the process was not stopped. */
const NOT_STOPPED_MS = 200;
/** Milliseconds between two drawings unless a key was pressed: many events are drawn at once. */
const DRAW_MS = 50;

/** Commands that end in a notice. */
export type Effect = Exclude<Command, "quit" | "interrupt" | "suspend">;

/** A view as a state, and functions on it. */
interface View<S, A> {
  readonly initial: (size: Size) => S;
  readonly reduce: (state: S, action: A | KeyAction) => S;
  /** What is computed once before each drawing and each read of keys, and not for each event. */
  readonly settle: (state: S) => S;
  readonly keys: (input: string, key: Key, state: S) => readonly (A | KeyAction | Command)[];
  /** Returns the notice that the view shows. */
  readonly effect: (command: Effect, state: S, output: NodeJS.WriteStream) => string;
  readonly screen: FunctionComponent<ScreenProps<S>>;
  /** Dispatches what the view shows as it arrives; resolves at its end. Rejects to end the view. */
  readonly feed: (dispatch: (action: A | KeyAction) => void) => Promise<void>;
}

/** Shows a view on this process's terminal until the reader quits. The caller has checked that stdout is a terminal. */
export async function fullScreen<S, A extends object>(view: View<S, A>, { env, signal }: ViewProcess): Promise<void> {
  const input = keyboard();
  const output = process.stdout;
  const quit = Promise.withResolvers<void>();
  let state = view.initial(sizeOf(output));

  const onInput: ScreenProps<S>["onInput"] = (text, key) => {
    state = view.settle(state);
    for (const action of view.keys(text, key, state)) {
      if (typeof action === "string") run(action);
      else state = view.settle(view.reduce(state, action));
    }
    drawSoon(0);
  };
  const theme = themeOf(env.NO_COLOR === undefined || env.NO_COLOR === "");
  const element = () => h(view.screen, { state, theme, onInput });

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

  let drawing: NodeJS.Timeout | undefined;
  let drawn = 0;
  const draw = () => {
    drawing = undefined;
    drawn = performance.now();
    state = view.settle(state);
    app?.rerender(element());
  };
  const drawSoon = (pause: number) => {
    if (pause === 0) clearTimeout(drawing);
    else if (drawing !== undefined) return;
    drawing = setTimeout(draw, Math.max(0, drawn + pause - performance.now()));
  };
  const dispatch = (action: A | KeyAction) => {
    state = view.reduce(state, action);
    drawSoon(DRAW_MS);
  };
  const run = (command: Command) => {
    if (command === "quit") quit.resolve();
    // Raw mode turned Ctrl-C into a byte; it keeps its meaning.
    else if (command === "interrupt") process.kill(process.pid, "SIGINT");
    else if (command === "suspend") suspend();
    else dispatch({ type: "noticed", text: view.effect(command, state, output) });
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
    resized();
  };
  const resized = () => dispatch({ type: "resized", size: sizeOf(output) });
  const aborted = () => quit.resolve();
  state = view.settle(state);
  mount();
  output.on("resize", resized);
  process.on("SIGCONT", resumed);
  signal.addEventListener("abort", aborted, { once: true });
  if (signal.aborted) quit.resolve();

  try {
    // The view stays open after the end of what it shows.
    await Promise.race([quit.promise, failed.promise, view.feed(dispatch).then(() => quit.promise)]);
  } finally {
    clearTimeout(drawing);
    output.off("resize", resized);
    signal.removeEventListener("abort", aborted);
    process.off("SIGCONT", resumed);
    unmount();
    if (input !== process.stdin) input.destroy();
  }
}

/** Where keys come from: standard input, or the terminal itself when standard input holds the trace. */
function keyboard(): ReadStream {
  return process.stdin.isTTY ? process.stdin : new ReadStream(openSync("/dev/tty", "r"));
}

function sizeOf(output: NodeJS.WriteStream): Size {
  return { columns: output.columns, rows: output.rows };
}

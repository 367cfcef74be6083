/** The view in a real terminal: tmux runs it, types the keys and shows what is on the screen. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { TGCTL } from "../../../test/helpers/programs.ts";
import { EVENTS, FIXTURE } from "../../report/fixtures/trace.ts";
import { traceFileText } from "../../report/trace-file.ts";
import { open, restored, skip } from "../fixtures/terminal.ts";

const SHOW = `${TGCTL} proxy trace --file ${FIXTURE}`;
const complete = (screen: string) => screen.includes("21 events · stream complete, press q to exit");

test("the view is read with the keyboard, resized, and gone after q", { skip }, async (t) => {
  const terminal = await open(t, SHOW);
  const screen = await terminal.until("the whole trace", complete);
  assert.match(screen, /›15 {2}2\.385 {2}Backend Result {2}status=503/);
  assert.doesNotMatch(screen, /BEFORE/);

  await terminal.keys("Down", "Down", "Down");
  await terminal.until("row 18", (now) => now.includes("›18  2.480  Snapshot        final response"));
  await terminal.keys("s");
  await terminal.until("the snapshot", (now) => now.includes("Snapshot · final response") && now.includes("code: 503"));
  await terminal.keys("d");
  await terminal.until(
    "the diff",
    (now) => now.includes("Snapshot diff · final response ─") && now.includes("│ no change "),
  );
  await terminal.keys("e", "f");
  await terminal.until("JSON", (now) => now.includes('"severity": "info"'));
  await terminal.keys("Tab", "End");
  await terminal.until("the end of the details", (now) => / of \d+ ─╯\n q: quit/.test(now));
  await terminal.keys("c");
  await terminal.until("the answer to c", (now) => now.includes("copied details to clipboard"));

  await terminal.resize(140, 40);
  await terminal.until("panes side by side", (now) => /^╭─ Events.*╮╭─ Raw event/m.test(now));
  await terminal.resize(50, 14);
  await terminal.until(
    "stacked panes",
    (now) => /╮\n(.*\n)+╭─ Raw event/.test(now) && now.split("\n")[2]?.length === 50,
  );

  await terminal.keys("q");
  await terminal.until("the screen as before", restored(0));
});

test("y copies the request as a curl command, w saves the trace, each time under a new name", { skip }, async (t) => {
  const terminal = await open(t, SHOW);
  await terminal.until("the whole trace", complete);
  await terminal.keys("y");
  await terminal.until("the answer to y", (now) => now.includes("copied curl command to clipboard"));
  await terminal.keys("w");
  await terminal.until("the first file", (now) => now.includes("saved as trace-20260302-102030.jsonl"));
  await terminal.keys("w");
  await terminal.until("the second file", (now) => now.includes("saved as trace-20260302-102030-2.jsonl"));
  const saved = readFileSync(join(terminal.folder, "trace-20260302-102030.jsonl"), "utf8");
  assert.equal(saved, traceFileText(EVENTS, false));
  await terminal.keys("q");
  await terminal.until("the screen as before", restored(0));
});

test("Ctrl-Z suspends to the shell as it was; fg shows the view again, as often as one likes", { skip }, async (t) => {
  const terminal = await open(t, "PS1=prompt: bash --norc --noprofile -i");
  await terminal.until("the prompt", (now) => now.includes("prompt:"));
  await terminal.keys(SHOW, "Enter");
  await terminal.until("the whole trace", complete);
  await terminal.keys("g", "j");
  for (const row of [2, 3]) {
    await terminal.until(`row ${row}`, (now) => now.includes(`› ${row}  0.`));
    await terminal.keys("C-z");
    await terminal.until("the shell", (now) => /Stopped/.test(now) && !now.includes("╭"));
    await terminal.keys("clear", "Enter");
    await terminal.until("what the shell prints", (now) => !now.includes("Stopped"));
    await terminal.keys("echo $((6 * 7)); echo BEFORE; fg", "Enter");
    await terminal.until("the view", (now) => complete(now) && now.includes(`› ${row}  0.`));
    await terminal.keys("j");
  }
  await terminal.keys("q");
  await terminal.until("the shell", (now) => now.includes("42\nBEFORE") && !now.includes("╭"));
});

test("a view that was stopped from outside is drawn again when it continues", { skip }, async (t) => {
  const terminal = await open(t, "PS1=prompt: bash --norc --noprofile -i");
  await terminal.until("the prompt", (now) => now.includes("prompt:"));
  await terminal.keys(`sh -c 'echo $$ > view.pid; exec ${SHOW}'`, "Enter");
  await terminal.until("the whole trace", complete);
  process.kill(Number(readFileSync(join(terminal.folder, "view.pid"), "utf8")), "SIGTSTP");
  await terminal.until("the shell", (now) => now.includes("Stopped"));
  await terminal.keys("clear", "Enter");
  await terminal.until("an empty screen", (now) => !now.includes("Stopped") && !now.includes("╭"));
  await terminal.keys("fg", "Enter");
  await terminal.until("the view", (now) => complete(now) && now.includes("╭─ Events"));
  await terminal.keys("q");
  await terminal.until("the shell", (now) => now.includes("prompt:") && !now.includes("╭"));
});

test("escape quits; Ctrl-C interrupts; both restore the screen", { skip }, async (t) => {
  const [escaped, interrupted] = await Promise.all([open(t, SHOW), open(t, SHOW)]);
  await escaped.until("the whole trace", complete);
  await escaped.keys("Escape");
  await escaped.until("the screen as before", restored(0));
  await interrupted.until("the whole trace", complete);
  await interrupted.keys("C-c");
  await interrupted.until("the screen as before", restored(130));
});

test("a view that is terminated from outside restores the screen", { skip }, async (t) => {
  const terminal = await open(t, `sh -c 'echo $$ > view.pid; exec ${SHOW}'`);
  await terminal.until("the whole trace", complete);
  process.kill(Number(readFileSync(join(terminal.folder, "view.pid"), "utf8")), "SIGTERM");
  await terminal.until("the screen as before", restored(143));
});

test("a trace on standard input leaves the keys to the terminal", { skip }, async (t) => {
  const terminal = await open(t, `cat ${FIXTURE} | ${TGCTL} proxy trace --file -`);
  await terminal.until("the whole trace", complete);
  await terminal.keys("Home");
  await terminal.until("the first row", (now) => now.includes("› 1  0.003  Request Start"));
  await terminal.keys("q");
  await terminal.until("the screen as before", restored(0));
});

test("a file that cannot be shown leaves its error on the screen that stays", { skip }, async (t) => {
  const terminal = await open(t, `${TGCTL} proxy trace --file missing.jsonl`);
  const screen = await terminal.until("the screen as before", restored(1));
  assert.match(screen, /Error: failed to read trace file missing\.jsonl: it does not exist/);
});

test("a file that breaks in the middle shows the break as a row", { skip }, async (t) => {
  const write = `printf '%s\\n' '{"message":{"type":"requestStarted"}}' '{oops' > broken.jsonl`;
  const terminal = await open(t, `${write}; ${TGCTL} proxy trace --file broken.jsonl`);
  const screen = await terminal.until("the break", (now) => now.includes("failed to decode trace event"));
  assert.match(screen, /1 {9}Request Start/);
  await terminal.keys("w");
  await terminal.until("the file", (now) => now.includes("saved as trace.jsonl"));
  assert.match(readFileSync(join(terminal.folder, "trace.jsonl"), "utf8"), /^\{"traceFile":1,.*"events":1,.*\}\n.*\n$/);
  await terminal.keys("q");
  await terminal.until("the screen as before", restored(0));
});

test("an uncaught error is printed on the restored screen", { skip }, async (t) => {
  const module = new URL("terminal.ts", import.meta.url).pathname;
  const crash = `import("${module}").then((screen) => { screen.enterAlternateScreen(1); throw new Error("boom"); })`;
  const terminal = await open(t, `${process.execPath} -e '${crash}'; (exit 7)`);
  const screen = await terminal.until("the screen as before", restored(7));
  assert.match(screen, /Error: boom/);
});

test("a terminal that cannot show the view gets text and a note, a file gets raw events", { skip }, async (t) => {
  const terminal = await open(t, `TERM=dumb ${SHOW} 2> note; TERM=dumb ${SHOW} > out 2> err`);
  const screen = await terminal.until("the end", (now) => now.includes("exit code 0"));
  assert.match(screen, /^✗ response 503 {2}by the backend$/m);
  const written = (name: string) => readFileSync(join(terminal.folder, name), "utf8");
  assert.match(written("note"), /^this terminal cannot show a full-screen view \(TERM=dumb\), printing text; -o text/);
  assert.equal(written("out"), readFileSync(FIXTURE, "utf8"));
  assert.equal(written("err"), "");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { type LogFormat, LogOutput, LogThrottle } from "./log.ts";
import { parseLogFilter } from "./log-filter.ts";

function capture(filter: string, format: LogFormat = "text"): { output: LogOutput; lines: string[] } {
  const lines: string[] = [];
  return { output: new LogOutput(parseLogFilter(filter), format, (line) => lines.push(line)), lines };
}

test("a text line holds time, level, target, message and fields", () => {
  const { output, lines } = capture("info");
  output
    .logger("gateway")
    .warn("reload refused", { file: "a b.yaml", line: 3, hint: undefined, ok: false, next: null });
  assert.match(
    lines[0] ?? "",
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\twarn\tgateway reload refused file="a b\.yaml" line=3 ok=false next=null\n$/,
  );
});

test("a JSON line starts with level, time and scope", () => {
  const { output, lines } = capture("info", "json");
  output.logger("gateway").error('said "no"', { file: "x", error: new Error("bad", { cause: new Error("worse") }) });
  const line = lines[0] ?? "";
  assert.match(line, /^\{"level":"error","time":"[^"]+Z","scope":"gateway",/);
  const { time: _, ...rest } = JSON.parse(line);
  assert.deepEqual(rest, { level: "error", scope: "gateway", message: 'said "no"', file: "x", error: "bad: worse" });
});

test("bytes of a peer cannot forge a line or control a terminal", () => {
  for (const format of ["text", "json"] as const) {
    const { output, lines } = capture("info", format);
    output.logger("admin").info("a\nb\u001b[2J\u009b", { path: "/x\r\n2026 forged\u2028" });
    assert.equal(lines.length, 1);
    const body = (lines[0] ?? "").slice(0, -1).replaceAll("\t", "");
    assert.doesNotMatch(body, /[\p{Cc}\u2028]/u);
  }
});

test("secrets in URLs are redacted in messages, fields and errors, in both formats", () => {
  for (const format of ["text", "json"] as const) {
    const { output, lines } = capture("info", format);
    output.logger("gateway").warn("cannot fetch https://me:s3cret@a.test/keys?token=s3cret", {
      url: "https://a.test/?password=s3cret&page=2",
      error: new Error("bad", { cause: new Error("no answer from http://a.test/?api_key=s3cret") }),
    });
    assert.doesNotMatch(lines[0] ?? "", /s3cret/);
    assert.match(lines[0] ?? "", /token=<redacted>.*page=2.*api_key=<redacted>/);
  }
});

test("loggers follow a filter that is replaced at run time", () => {
  const { output, lines } = capture("info,proxy=off");
  const log = output.logger("proxy::match");
  log.error("stopped");
  output.filter = output.filter.with("proxy::match=debug");
  log.debug("written");
  log.trace("stopped");
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /written/);
});

test("the first message is logged, then one per interval with the number of suppressed ones", () => {
  let now = 0;
  const throttle = new LogThrottle(1000, () => now);
  const logged: [number, number][] = [];
  for (now = 0; now <= 3500; now += 250) throttle.run((suppressed) => logged.push([now, suppressed]));
  assert.deepEqual(logged, [
    [0, 0],
    [1000, 3],
    [2000, 3],
    [3000, 3],
  ]);
  now = 60_000;
  throttle.run((suppressed) => logged.push([now, suppressed]));
  assert.deepEqual(logged.at(-1), [60_000, 2]);
});

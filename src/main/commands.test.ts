import assert from "node:assert/strict";
import { test } from "node:test";
import { invokeProgram } from "../cli/fixtures/invoke.ts";
import { isGroup, type Node } from "../cli/runner/define-command.ts";
import { parseCommandLine } from "../cli/runner/parse.ts";
import { tgctl } from "../cli/tgctl.ts";
import { tracegate } from "./commands.ts";

/** The command that a line runs, with its options that are set. */
function parsed(...argv: string[]): readonly [name: string, options: object, ...rest: (readonly string[])[]] {
  const request = parseCommandLine(tracegate, argv);
  assert.equal(request.kind, "run");
  if (request.kind !== "run") throw new Error("unreachable");
  const { command, invocation } = request;
  const options = Object.fromEntries(
    Object.entries(invocation.options).filter(([, value]) => value !== undefined && value !== false),
  );
  return [command.name, options, ...(invocation.rest === undefined ? [] : [invocation.rest])];
}

test("without a command it runs a gateway, on a file, on text or on the default", () => {
  assert.deepEqual(parsed(), ["run", { file: [] }]);
  assert.deepEqual(parsed("-f", "a.yaml"), ["run", { file: ["a.yaml"] }]);
  assert.deepEqual(parsed("-f", "-"), ["run", { file: ["-"] }]);
  assert.deepEqual(parsed("run", "--file=a.yaml"), ["run", { file: ["a.yaml"] }]);
  assert.deepEqual(parsed("--config", "{}", "--validate-only"), [
    "run",
    { file: [], config: "{}", "validate-only": true },
  ]);
  assert.deepEqual(parsed("--file=a", "--supervised"), ["run", { file: ["a"], supervised: true }]);
});

test("a command may stand before or after its options", () => {
  assert.deepEqual(parsed("check", "-f", "a"), ["check", { file: ["a"], before: [], "fail-on": [] }]);
  assert.deepEqual(parsed("-f", "a", "check"), ["check", { file: ["a"], before: [], "fail-on": [] }]);
  assert.deepEqual(parsed("-f", "check", "migrate"), ["migrate", { file: ["check"] }]);
  assert.deepEqual(parsed("quickstart"), ["quickstart", { file: [] }]);
});

test("a command line after -- is left unchanged", () => {
  const program = ["curl", "-f", "--json", "--", "-h"];
  assert.deepEqual(parsed("oneshot", "-f", "a", "--output", "log", "--", ...program), [
    "oneshot",
    { file: ["a"], output: "log" },
    program,
  ]);
});

const rejected: readonly (readonly [argv: string, error: string, hint?: string])[] = [
  ["-f", "option '-f, --file <file>' argument missing"],
  ["--file --validate-only", "option '-f, --file <file>' argument missing"],
  ["--file=", "option '-f, --file <file>' argument missing"],
  ["-c", "option '-c, --config <config>' argument missing"],
  ["-f a -c b", "only one of --config or --file"],
  ["check", "check needs a file", "tracegate check -f FILE"],
  ["check a.yaml", "accepts at most 0 arg(s), received 1", "tracegate check -f a.yaml"],
  ["quickstart -c a", "unknown option '-c'"],
  ["quickstart now", "accepts at most 0 arg(s), received 1", "tracegate quickstart -f now"],
  ["oneshot -f a", "oneshot needs a command after --", "tracegate oneshot -f FILE -- COMMAND..."],
  ["oneshot -f a npm test", "accepts at most 0 arg(s), received 2", "tracegate oneshot [options] -- npm test"],
  ["oneshot -- true", "oneshot needs a configuration", "tracegate oneshot -f FILE -- COMMAND..."],
  ["oneshot -f - -- true", "oneshot leaves standard input to the command"],
  ["oneshot -f a --validate-only -- true", "unknown option '--validate-only'"],
  ["-f a --output b", "unknown option '--output'"],
  ["-f a -- true", "nothing may follow -- here"],
  ["migrate", "migrate needs a file", "tracegate migrate -f FILE"],
  ["migrate -f -", "migrate rewrites files, and - is none"],
  ["dance", 'unknown command "dance" for "tracegate"', "tracegate --help"],
  ["chek -f a", 'unknown command "chek" for "tracegate"', "tracegate check"],
  ["a.yaml", 'unknown command "a.yaml" for "tracegate"', "tracegate -f a.yaml"],
  ["--nope", "unknown option '--nope'"],
  ["--validate-onyl", "unknown option '--validate-onyl'", "--validate-only"],
];

for (const [line, error, hint] of rejected) {
  test(`tracegate ${line}: ${error}`, async () => {
    const { code, stdout, stderr } = await invokeProgram(tracegate, line.split(" "));
    const [first, second] = stderr.split("\n");
    assert.deepEqual([code, stdout, first], [2, "", `tracegate: ${error}`]);
    if (hint !== undefined) assert.equal(second, `Try: ${hint}`);
  });
}

test("help shows the commands, and the options of the one that runs by default", async () => {
  const { code, stdout } = await invokeProgram(tracegate, ["--help"]);
  assert.equal(code, 0);
  assert.match(stdout, /Usage:\n {2}tracegate \[command\] \[options\]\n/);
  assert.match(stdout, /\n {2}migrate +Rewrite fields/);
  assert.match(stdout, /Options of run, the default command:\n {2}-f, --file <file> /);
  assert.doesNotMatch(stdout, /supervised/);
  assert.deepEqual((await invokeProgram(tracegate, ["help"])).stdout, stdout);
  assert.match((await invokeProgram(tracegate, ["check", "-h"])).stdout, /tracegate check \[options\]/);
});

test("-V prints the version, --version what it was built with", async () => {
  const short = (await invokeProgram(tracegate, ["-V"])).stdout;
  const long = JSON.parse((await invokeProgram(tracegate, ["--version"])).stdout);
  assert.equal(short, `${long.version}\n`);
  assert.deepEqual(Object.keys(long), ["version", "commit", "buildDate", "node", "platform"]);
});

test("completion offers commands, and the options of a gateway", async () => {
  const complete = async (...words: string[]) =>
    (await invokeProgram(tracegate, ["__complete", ...words])).stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.split("\t")[0]);
  const commands = [
    "run",
    "check",
    "explain",
    "oneshot",
    "migrate",
    "quickstart",
    "init",
    "healthcheck",
    "controller",
    "convert",
    "help",
    "completion",
  ];
  assert.deepEqual(await complete(""), commands);
  assert.deepEqual(await complete("--v"), ["--validate-only"]);
  assert.deepEqual(await complete("check", "-f", ""), [":files"]);
  assert.deepEqual(await complete("-f", ""), [":files"]);
});

test("an option takes a value in all commands of a program, or in none: so the runner can find commands after options", () => {
  const kinds = new Map<string, Set<boolean>>();
  const collect = (node: Node): void => {
    if (isGroup(node)) {
      for (const each of node.commands) collect(each);
      return;
    }
    for (const [name, { type, short }] of Object.entries(node.options))
      for (const written of [`--${name}`, ...(short === undefined ? [] : [`-${short}`])])
        kinds.set(written, (kinds.get(written) ?? new Set()).add(type === "switch"));
  };
  for (const program of [tracegate, tgctl(() => Promise.reject(new Error("no terminal")))]) {
    kinds.clear();
    collect(program);
    assert.deepEqual(
      [...kinds].filter(([, kind]) => kind.size > 1),
      [],
    );
  }
});

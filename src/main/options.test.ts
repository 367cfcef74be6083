import assert from "node:assert/strict";
import { test } from "node:test";
import { parseOptions, UsageError } from "./options.ts";

test("a configuration is named by file or given as text", () => {
  assert.deepEqual(parseOptions(["-f", "a.yaml"]), {
    command: "run",
    validateOnly: false,
    supervised: false,
    file: "a.yaml",
  });
  assert.deepEqual(parseOptions(["--config", "{}", "--validate-only"]), {
    command: "run",
    validateOnly: true,
    supervised: false,
    config: "{}",
  });
  assert.deepEqual(parseOptions(["-f", "-"]), {
    command: "run",
    validateOnly: false,
    supervised: false,
    file: "-",
  });
});

test("neither file nor text asks for the default configuration", () => {
  assert.deepEqual(parseOptions([]), { command: "run", validateOnly: false, supervised: false });
});

test("commands", () => {
  assert.deepEqual(parseOptions(["check", "-f", "a", "--json"]), { command: "check", file: "a", json: true });
  assert.deepEqual(parseOptions(["quickstart"]), { command: "quickstart" });
  assert.deepEqual(parseOptions(["quickstart", "-f", "a.yaml"]), { command: "quickstart", file: "a.yaml" });
  assert.deepEqual(parseOptions(["-V"]), { command: "version", long: false });
  assert.deepEqual(parseOptions(["--version"]), { command: "version", long: true });
  assert.deepEqual(parseOptions(["quickstart", "-h"]), { command: "help" });
  assert.deepEqual(parseOptions(["migrate", "-f", "a"]), { command: "migrate", file: "a" });
});

test("a command line behind -- is left as it is", () => {
  const program = ["curl", "-f", "--json", "--", "-h"];
  assert.deepEqual(parseOptions(["oneshot", "-f", "a", "--output", "log", "--", ...program]), {
    command: "oneshot",
    program,
    file: "a",
    output: "log",
  });
  assert.deepEqual(parseOptions(["oneshot", "-c", "{}", "--", "true"]), {
    command: "oneshot",
    program: ["true"],
    config: "{}",
  });
});

test("what cannot be meant is refused with what to do", () => {
  const refused = (args: string[], message: RegExp): void =>
    assert.throws(
      () => parseOptions(args),
      (error) => error instanceof UsageError && message.test(error.message),
    );
  refused(["-f"], /^-f needs a file: tracegate -f FILE$/);
  refused(["--file", "--validate-only"], /^-f needs a file/);
  refused(["-f", ""], /^-f needs a file/);
  refused(["-c"], /^-c needs a configuration as text/);
  refused(["-f", "a", "-c", "b"], /only one of/);
  refused(["check"], /check needs a file/);
  refused(["check", "a.yaml"], /unexpected argument: a\.yaml; write -f a\.yaml/);
  refused(["-f", "a", "--json"], /--json belongs to tracegate check/);
  refused(["quickstart", "-c", "a"], /quickstart takes a file: tracegate quickstart -f FILE/);
  refused(["oneshot", "-f", "a"], /oneshot needs a command behind --: tracegate oneshot -f FILE -- COMMAND/);
  refused(["oneshot", "-f", "a", "true"], /unexpected argument: true; write -- before the command/);
  refused(["oneshot", "--", "true"], /oneshot needs a configuration/);
  refused(["oneshot", "-f", "-", "--", "true"], /leaves standard input to the command/);
  refused(["oneshot", "-f", "a", "--validate-only", "--", "true"], /--validate-only starts nothing/);
  refused(["oneshot", "-f", "a", "--output"], /--output needs a file/);
  refused(["-f", "a", "--output", "b"], /--output belongs to tracegate oneshot/);
  refused(["-f", "a", "--", "true"], /unexpected argument: true/);
  refused(["migrate"], /migrate needs a file: tracegate migrate -f FILE/);
  refused(["migrate", "-f", "-"], /migrate rewrites a file, which - is not/);
  refused(["migrate", "a.yaml"], /unexpected argument: a\.yaml; write -f a\.yaml/);
  refused(["dance"], /unknown command: dance; see/);
  refused(["chek", "-f", "a"], /unknown command: chek; did you mean check\?/);
  refused(["a.yaml"], /unknown command: a\.yaml; for a file write -f a\.yaml/);
  refused(["quickstart", "now"], /unexpected argument: now; write -f now/);
  refused(["--nope"], /^Unknown option '--nope'; see tracegate --help$/);
});

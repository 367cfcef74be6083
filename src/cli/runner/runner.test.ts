import assert from "node:assert/strict";
import { test } from "node:test";
import { closedPort } from "../fixtures/admin.ts";
import { invoke } from "../fixtures/invoke.ts";

const refused: readonly (readonly [line: string, error: string])[] = [
  ["nonsense", 'unknown command "nonsense" for "tgctl"'],
  ["proxy confg", 'unknown command "confg" for "tgctl proxy"'],
  ["proxy confg all", 'unknown command "confg" for "tgctl proxy"'],
  ["proxy trace --lcal", "unknown option '--lcal'"],
  ["proxy trace --port", "option '--port <port>' argument missing"],
  ["proxy trace a b", "accepts at most 1 arg(s), received 2"],
  ["help proxy nonsense", 'unknown command "nonsense" for "tgctl proxy"'],
  ["help trace raw", 'unknown command "raw" for "tgctl proxy trace"'],
  ["trace --local -n shop", "--local does not accept --namespace"],
  ["config all --file f --pod web-1", "--file does not accept --pod"],
  ["trace --raw -o text", "--raw and -o text are mutually exclusive"],
  ["trace -o yaml", 'output format "yaml" not supported'],
  ["proxy trace foo/x -k f", '"foo/x" does not refer to a supported pod resource'],
  ["proxy trace gateway/x --local", "--local does not accept a resource argument"],
  ["proxy trace --local --file f", "at most one of --file or --local may be passed"],
  ["proxy trace --file f gateway/x", "--file does not accept a resource argument"],
  ["proxy trace --file f --expression true", "--file does not accept --expression"],
  [
    "proxy trace --file f --reveal",
    "--file does not accept --reveal: secrets are not in a saved trace unless it was recorded with --reveal",
  ],
  ["proxy trace --file f --save g", "--file does not accept --save: the trace is a file already"],
  ["trace open", "missing argument <file>"],
  ["proxy trace --file f -- http://a/", "--file does not accept a request URL after --"],
  ["proxy trace --local -- http://a/", "a request URL requires --port"],
  ["proxy trace --local --port 3000", "--port requires a request URL after --"],
  [
    "proxy trace --local --port 3000 -- -X POST",
    "request args after -- must include at least one http:// or https:// URL",
  ],
  ["proxy trace --local --port 0", "invalid --port 0; must be between 1 and 65535"],
  ["proxy log --local --proxy-admin-port x", "invalid --proxy-admin-port x; must be between 1 and 65535"],
  ["proxy config all --local -o xml", 'output format "xml" not supported'],
  ["proxy config all --local -- x", "nothing may follow -- here"],
  ["proxy log --local --level loud", 'unknown level "loud"'],
  ["proxy log --local --set proxy", 'invalid --set value "proxy": expected module=level'],
  ["proxy log --local --set proxy=loud", 'unknown level "loud"'],
  ["proxy log --local --level debug --set a=info", "--level and --set are mutually exclusive"],
  ["proxy profile cpu --local --seconds 301", "invalid --seconds 301; must be between 1 and 300"],
  ["proxy profile --local --seconds 0", "invalid --seconds 0; must be between 1 and 300"],
  ["completion", "missing argument <shell>"],
  ["completion tcsh", 'no completion for shell "tcsh"'],
];

for (const [line, error] of refused) {
  test(`tgctl ${line}: ${error}`, async () => {
    const { code, stdout, stderr } = await invoke(line.split(" "));
    assert.equal(code, 2);
    assert.equal(stdout, "");
    assert.equal(stderr.split("\n")[0], `Error: ${error}`);
  });
}

test("an incomplete command line with a URL: the error shows how to write it", async () => {
  for (const line of ["proxy trace --local http://a/", "trace -- http://a/", "trace http://a/"]) {
    const { stderr } = await invoke(line.split(" "));
    assert.match(
      stderr,
      /\nTry: tgctl proxy trace --port 3000 -- http:\/\/a\/ \(with the port of the listener\)\n$/,
      line,
    );
  }
});

test("a URL without --, or without --port, beside a resource: the error shows a line that works", async () => {
  const bare = await invoke(["trace", "gateway/a", "http://b/"]);
  assert.match(
    bare.stderr,
    /\nTry: write -- before the URL: tgctl proxy trace watch gateway\/a \[options\] -- http:\/\/b\/\n$/,
  );
  const portless = await invoke(["trace", "gateway/a", "--", "http://b/"]);
  assert.match(portless.stderr, /\nTry: tgctl proxy trace gateway\/a --port 80 -- http:\/\/b\/ \(with/);
});

test("a proxy that does not run: where it looked, how to start one, exit code 3", async () => {
  const port = await closedPort();
  for (const line of ["trace --local", "config all", "config backends --local", "log --local", "status"]) {
    const { code, stderr } = await invoke(["proxy", ...line.split(" "), "--proxy-admin-port", String(port)]);
    assert.equal(code, 3, line);
    assert.match(stderr, new RegExp(`^Error: no admin server reached at http://localhost:${port}: connection refused`));
    assert.match(
      stderr,
      /\nTry: start a proxy with `tracegate -f gateway\.yaml`.*config\.adminAddr.*--proxy-admin-port or TGCTL_ADMIN; --kubeconfig <file> chooses a cluster\n$/,
    );
  }
});

test("--json, wherever it stands, turns an error into one line of JSON", async () => {
  for (const line of ["--json proxy log a b", "proxy log a b --json"]) {
    const { code, stderr } = await invoke(line.split(" "));
    const { error } = JSON.parse(stderr);
    assert.equal(code, 2);
    assert.deepEqual([error.kind, error.exitCode], ["usage", 2]);
    assert.match(error.message, /^accepts at most 1 arg/);
  }
});

test("a group without a command, and --help, print help to stdout", async () => {
  const root = await invoke([]);
  assert.equal(root.code, 0);
  assert.match(root.stdout, /^Inspect tracegate proxies.*\n\nUsage:\n {2}tgctl <command>[\s\S]*130 {2}interrupted/);
  assert.deepEqual(await invoke(["--help"]), root);
  const trace = await invoke(["proxy", "trace", "--local", "-h"]);
  assert.equal(trace.code, 0);
  assert.match(trace.stdout, /tgctl proxy trace watch \[options\] \[resource\] \[-- url \[curl args\]\]/);
});

test("help with the words of a command is its --help", async () => {
  assert.deepEqual(await invoke(["help"]), await invoke([]));
  for (const words of ["proxy", "proxy config", "trace", "c be", "help"]) {
    const help = await invoke(["help", ...words.split(" ")]);
    assert.equal(help.code, 0, words);
    assert.deepEqual(help, await invoke([...words.split(" "), "--help"]), words);
  }
  const trace = (await invoke(["help", "trace"])).stdout;
  assert.match(trace, /\n {2}tgctl proxy trace \[options\] \[resource\] \[-- url \[curl args\]\]\n/);
  assert.match(trace, /Options of watch, the default command:\n {6}--local /);
});

test("--version prints the version for people, with --json for programs", async () => {
  const json = await invoke(["version"]);
  const { version } = JSON.parse(json.stdout);
  for (const flag of ["--version", "-V"]) assert.equal((await invoke([flag])).stdout, `tgctl ${version}\n`);
  assert.equal((await invoke(["--version", "--json"])).stdout, json.stdout);
});

test("version prints one line of JSON", async () => {
  const { stdout } = await invoke(["version"]);
  assert.deepEqual(Object.keys(JSON.parse(stdout)), [
    "version",
    "commit",
    "buildDate",
    "runtimeOS",
    "runtimeArch",
    "node",
  ]);
  // The tests run from a checkout.
  assert.match(JSON.parse(stdout).commit, /^[0-9a-f]{40}(-dirty)?$/);
  assert.equal(stdout.split("\n").length, 2);
});

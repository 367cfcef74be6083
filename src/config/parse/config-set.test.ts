import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { formatDiagnostics } from "../../translation/problems/diagnostics.ts";
import { loadConfig, locating } from "../load.ts";
import { InputReader } from "./inputs.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tracegate-files-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

function load(...names: string[]) {
  return loadConfig({ kind: "files", paths: names.map((name) => join(folder, name)) }, { SECRET: "a-long-secret" });
}

/** First lines of the problems, and the places that they name, without the folder. */
function problems(...names: string[]): string[] {
  const loaded = load(...names);
  const text = formatDiagnostics(loaded.ok ? loaded.warnings : loaded.diagnostics);
  return text
    .replaceAll(`${folder}/`, "")
    .split("\n")
    .filter((line) => /\.yaml|^\S+: error/.test(line));
}

const GATEWAY = "gateways:\n  web: {port: 8080}\n";
const route = (name: string, more = ""): string =>
  `routes:\n- name: ${name}\n  gateways: [web]\n  matches: [{path: {pathPrefix: /${name}}}]\n  policies: {directResponse: {status: 200}}\n${more}`;

test("files and folders are one configuration: lists are appended in byte order, objects are merged", () => {
  write({
    "base.yaml": `config: {logging: {level: warn}}\n${GATEWAY}`,
    "conf.d/b.yaml": route("b", "config: {logging: {format: json}}\n"),
    "conf.d/a.json": JSON.stringify({
      routes: [{ name: "a", gateways: ["web"], policies: { directResponse: { status: 200 } } }],
    }),
    "conf.d/B.yml": route("big"),
    "conf.d/.hidden.yaml": "not: [valid",
    "conf.d/b.yaml~": "not: [valid",
    "conf.d/#b.yaml#": "not: [valid",
    "conf.d/notes.txt": "not: [valid",
    "conf.d/more/c.yaml": "not: [valid",
  });
  const loaded = load("base.yaml", "conf.d");
  assert.ok(loaded.ok);
  assert.deepEqual([loaded.config.logging.level, loaded.config.logging.format], ["warn", "json"]);
  const routes = loaded.ir.binds[0]?.listeners[0]?.routes ?? [];
  assert.deepEqual(
    routes.map(({ name, origin }) => [name, origin?.path.slice(0, 2)]),
    [
      ["big", ["routes", 0]],
      ["a", ["routes", 1]],
      ["b", ["routes", 2]],
    ],
  );
  const locate = locating({ kind: "files", paths: [join(folder, "base.yaml"), join(folder, "conf.d")] }, {});
  const places = [
    ["routes", 2, "name"],
    ["config", "logging", "format"],
    ["gateways", "web"],
  ].map((path) => {
    const place = locate(path);
    return place && `${place.file.slice(folder.length + 1)}:${place.line}`;
  });
  assert.deepEqual(places, ["conf.d/b.yaml:2", "conf.d/b.yaml:6", "base.yaml:3"]);
  assert.equal(locate(["routes", 3]), undefined);
});

test("problems are at the place in their own file, and a conflict names both", () => {
  write({
    "base.yaml": `${GATEWAY}config: {logging: {level: warn}, dns: {denyDomains: [a.example]}}\nbackends: [{name: app, host: "a:1"}]\n`,
    "conf.d/a.yaml": route("a"),
    "conf.d/b.yaml": `${route("x")}- name: a\n  gateways: [wep]\n`,
    "conf.d/c.yaml": `${GATEWAY}config: {logging: {level: info}, dns: {denyDomains: [b.example]}}\nbackends: [{name: app, host: "a:1"}]\nfoo: 1\nbinds: [{port: 8080, listeners: []}]\n`,
  });
  assert.deepEqual(problems("base.yaml", "conf.d"), [
    "base.yaml:2:15: error: gateways.web.port: port 8080 is configured by both binds[0] and gateways.web; ports must be unique",
    "  conf.d/c.yaml:6:9: binds[0]: the first",
    'conf.d/b.yaml:7:14: error: routes[1].gateways[0]: unknown gateway reference wep; did you mean "web"?',
    "conf.d/c.yaml:2:3: error: gateways.web: is in two files; rename one of the two",
    "  base.yaml:2:3: gateways.web: the first",
    "conf.d/c.yaml:3:20: error: config.logging.level: is set in two files; keep one of the two",
    "  base.yaml:3:20: config.logging.level: the first",
    "conf.d/c.yaml:3:40: error: config.dns.denyDomains: is set in two files; keep one of the two",
    "  base.yaml:3:40: config.dns.denyDomains: the first",
    "conf.d/c.yaml:4:19: error: backends[0].name: duplicate backend app",
    "  base.yaml:4:12: backends[0]: the first",
    "conf.d/c.yaml:5:1: error: foo: unknown field; expected one of config, adminAddr, gateways, routes, tcpRoutes, binds, backends, policies, frontendPolicies, services, workloads, routeGroups",
  ]);
});

test("a value of the environment is in no message, whichever file it is used in", () => {
  write({
    "a.yaml": `${GATEWAY}backends: [{name: $SECRET, host: "a:1"}]\n`,
    "b.yaml": 'backends: [{name: a-long-secret, host: "a:1"}]\n',
  });
  const loaded = load("a.yaml", "b.yaml");
  assert.ok(!loaded.ok);
  assert.equal(loaded.diagnostics[0]?.message, "duplicate backend ${SECRET}");
});

test("paths of files are relative to the file that names them", () => {
  const policies = "{directResponse: {status: 200, body: x}}";
  const wanted = (name: string): string =>
    `routes:\n- name: ${name}\n  gateways: [web]\n  policies: {apiKey: {keys: []}, jwtAuth: {issuer: i, audiences: [a], jwks: {file: keys/jwks.json}}, ${policies.slice(1)}\n`;
  write({
    "base.yaml": GATEWAY,
    "one/a.yaml": wanted("a"),
    "two/b.yaml": wanted("b"),
    "one/keys/jwks.json": '{"keys": []}',
  });
  const read = [...load("base.yaml", "one", "two").inputs.files.keys()].map((path) => path.slice(folder.length + 1));
  assert.ok(read.includes("one/keys/jwks.json") && read.includes("two/keys/jwks.json"), read.join(" "));
});

test("what cannot be read says which file it is, and all are said at once", () => {
  write({
    "a.yaml": GATEWAY,
    "conf.d/b.yaml": "",
    "syntax/c.yaml": "routes: [",
    "kube/d.yaml": "apiVersion: v1\nkind: Service\n",
  });
  mkdirSync(join(folder, "empty"));
  symlinkSync(join(folder, "a.yaml"), join(folder, "conf.d/same.yaml"));
  symlinkSync("nowhere.yaml", join(folder, "syntax/gone.yaml"));
  assert.deepEqual(problems("a.yaml", "a.yaml", "conf.d", "empty", "syntax"), [
    "a.yaml: error: is named twice; keep one -f",
    "conf.d/same.yaml: error: is the same file as a.yaml; keep one of the two",
    `${join(folder, "empty")}: error: has no file whose name ends in .yaml, .yml or .json; hidden files and folders in it are not read`.replace(
      `${folder}/`,
      "",
    ),
    "syntax/gone.yaml: error: cannot read the file: it does not exist",
  ]);
  rmSync(join(folder, "conf.d/same.yaml"));
  rmSync(join(folder, "syntax/gone.yaml"));
  assert.deepEqual(problems("a.yaml", "conf.d", "syntax"), [
    "conf.d/b.yaml: error: is empty; write {} for a file without settings",
    "syntax/c.yaml:1:9: error: not valid YAML: this bracket is never closed",
  ]);
  assert.match(problems("a.yaml", "kube").join(), /^kube\/d\.yaml: error: holds Kubernetes objects/);
  const withInput = loadConfig({ kind: "files", paths: [join(folder, "a.yaml"), "-"] }, {});
  assert.ok(!withInput.ok);
  assert.match(formatDiagnostics(withInput.diagnostics), /^standard input: error: is read alone/);
});

test("the listing of a folder is an input, and follows what is in it", () => {
  write({ "conf.d/a.yaml": GATEWAY });
  const digests = (): unknown => {
    const reader = new InputReader();
    reader.names(join(folder, "conf.d"));
    return reader.inputs.files.get(`${join(folder, "conf.d")}/`);
  };
  const before = digests();
  write({ "conf.d/.b.yaml.swp": "x" });
  assert.equal(digests(), before);
  write({ "conf.d/b.yaml": "{}" });
  assert.notEqual(digests(), before);
});

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { stringify } from "yaml";
import { fc } from "../../test/helpers/property.ts";
import type { Origin } from "../base/origin.ts";
import { formatPath } from "../base/paths.ts";
import { type LoadResult, loadConfig, locating } from "./load.ts";

const EXAMPLES = new URL("../../examples/", import.meta.url);

const examples = readdirSync(EXAMPLES, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".yaml") && !name.startsWith("cases/"))
  .map((file) => ({ file, text: readFileSync(new URL(file, EXAMPLES), "utf8") }));

function load(text: string): LoadResult {
  return loadConfig({ kind: "text", text, name: "test.yaml" }, {});
}

/** Valid, or rejected with at least one problem that points into the text. */
function assertTold(text: string): void {
  const result = load(text);
  if (result.ok) return;
  const lines = text.split("\n");
  assert.ok(result.diagnostics.some(({ severity }) => severity === "error"));
  for (const { line, column, message, source } of result.diagnostics) {
    assert.notEqual(message, "");
    if (line === 0) continue;
    const text = lines[line - 1];
    assert.ok(text !== undefined && column >= 1 && column <= text.length + 1, `${line}:${column} of ${lines.length}`);
    // What may be secret is left out of it.
    if (source !== undefined) assert.ok(text.startsWith(source.split("<redacted>")[0] ?? ""));
  }
}

const name = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
// Names such as `te` frame messages and are rejected.
const headerName = name.map((text) => `x-${text}`);
const port = fc.integer({ min: 1, max: 65535 });
const hostname = fc.oneof(
  fc.domain(),
  fc.domain().map((domain) => `*.${domain}`),
);
const path = fc.array(name, { maxLength: 3 }).map((parts) => `/${parts.join("/")}`);
const value = fc.oneof(fc.record({ exact: fc.string() }), fc.record({ regex: fc.constantFrom("[a-z]+", ".*", "a|b") }));
const match = fc.record(
  {
    path: fc.oneof(
      fc.record({ exact: path }),
      fc.record({ pathPrefix: path }),
      fc.record({ regex: fc.constant("/a.*") }),
    ),
    method: fc.constantFrom("GET", "POST"),
    headers: fc.array(fc.record({ name, value }), { maxLength: 2 }),
    query: fc.array(fc.record({ name, value }), { maxLength: 2 }),
  },
  { requiredKeys: [] },
);
const policies = fc.record(
  {
    timeout: fc.record({ requestTimeout: fc.nat({ max: 1000 }).map((ms) => `${ms}ms`) }),
    requestHeaderModifier: fc.record({ set: fc.dictionary(headerName, fc.stringMatching(/^[ -~]*$/)) }),
    urlRewrite: fc.record({ path: fc.oneof(fc.record({ full: path }), fc.record({ prefix: path })) }),
    directResponse: fc.record({ status: fc.constantFrom(200, 404, 503), body: fc.string() }),
  },
  { requiredKeys: [] },
);
const backend = fc.record({
  host: fc.tuple(fc.domain(), port).map(([host, at]) => `${host}:${at}`),
  weight: fc.nat(9),
});
const anyRoute = fc.record(
  {
    hostnames: fc.array(hostname, { maxLength: 2 }),
    matches: fc.array(match, { maxLength: 3 }),
    policies,
    backends: fc.array(backend, { maxLength: 3 }),
  },
  { requiredKeys: [] },
);
/** A prefix can be replaced only where all matches are by prefix. */
const route = anyRoute.map(({ matches, policies, ...others }) => {
  const { urlRewrite, ...more } = policies ?? {};
  const byPrefix = matches?.every(({ path }) => path === undefined || "pathPrefix" in path) ?? true;
  const usable = urlRewrite === undefined || "full" in urlRewrite.path || byPrefix;
  return {
    ...others,
    ...(matches !== undefined && { matches }),
    ...(policies !== undefined && { policies: { ...more, ...(usable && urlRewrite !== undefined && { urlRewrite }) } }),
  };
});
const config = fc
  .uniqueArray(fc.tuple(port, fc.array(route, { maxLength: 4 })), { selector: ([at]) => at, maxLength: 3 })
  .map((binds) => ({ binds: binds.map(([at, routes]) => ({ port: at, listeners: [{ routes }] })) }));

test("what the schema describes translates: nothing is lost, every key is unique", () => {
  fc.assert(
    fc.property(config, (written) => {
      const result = load(stringify(written).replaceAll("$", "$$$$"));
      assert.ok(result.ok, JSON.stringify(result.ok || result.diagnostics));
      assert.equal(result.ir.binds.length, written.binds.length);
      for (const [i, bind] of result.ir.binds.entries()) {
        const routes = bind.listeners.flatMap((listener) => listener.routes);
        const before = written.binds[i]?.listeners[0]?.routes ?? [];
        assert.equal(routes.length, before.length);
        assert.equal(new Set(routes.map(({ key }) => key)).size, routes.length);
        for (const [j, { matches, backends }] of routes.entries()) {
          assert.equal(matches.length, Math.max(1, before[j]?.matches?.length ?? 0));
          assert.equal(backends.length, before[j]?.backends?.length ?? 0);
        }
      }
    }),
    { numRuns: 30 },
  );
});

test("every origin of an example is a place in its text: the key of a field, or the element of a list", () => {
  let origins = 0;
  for (const { file, text } of examples) {
    const result = load(text);
    if (!result.ok) continue;
    const locate = locating({ kind: "text", text, name: file }, {});
    const lines = text.split("\n");
    for (const { path } of originsIn(result.ir)) {
      const place = locate(path);
      assert.ok(place !== undefined, `${file}: ${formatPath(path)}`);
      const found = lines[place.line - 1]?.slice(place.column - 1) ?? "";
      const key = path.at(-1);
      if (typeof key === "string") assert.ok(found.startsWith(key), `${file}: ${formatPath(path)}: ${found}`);
      else
        assert.match(
          lines[place.line - 1]?.slice(0, place.column - 1) ?? "",
          /- $|\[.*$/,
          `${file}: ${formatPath(path)}`,
        );
      origins++;
    }
  }
  assert.ok(origins > 100);
});

/** All origins in a part of the IR. */
function originsIn(part: unknown): Origin[] {
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([key, value]) => (key === "origin" ? [value as Origin] : originsIn(value)));
}

test("an example with a change anywhere is valid, or every problem has a position in its text", () => {
  const files = examples.map(({ text }) => text);
  const insert = fc.constantFrom(
    "x",
    " ",
    "\n",
    "- ",
    ": ",
    "{",
    "]",
    '"',
    "*a",
    "&a ",
    "$",
    "${",
    "\t",
    "#",
    "0",
    "é🙂",
  );
  fc.assert(
    fc.property(fc.constantFrom(...files), fc.nat(), fc.nat({ max: 12 }), insert, (file, at, cut, text) => {
      const start = at % file.length;
      assertTold(file.slice(0, start) + text + file.slice(start + cut));
    }),
    { numRuns: 150 },
  );
});

test("any values in any fields are diagnostics, not exceptions", () => {
  const anything = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.constantFrom("config", "binds", "gateways", "routes", "backends", "policies", "services"),
        anything,
      ),
      (written) => assertTold(JSON.stringify(written, undefined, 1).replaceAll("$", "$$$$")),
    ),
    { numRuns: 100 },
  );
});

test("text that is not a configuration is a diagnostic, not an exception", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), assertTold), { numRuns: 150 });
});

test("nesting of any depth is a diagnostic, not an exception", () => {
  const braces = fc.constantFrom(["[", "]"], ["{a: ", "}"], ["[{services: ", "}]"]);
  fc.assert(
    fc.property(braces, fc.integer({ min: 1, max: 4000 }), ([open = "", close = ""], depth) => {
      const text = `config: ${open.repeat(depth)}${close.repeat(depth)}`;
      assertTold(text);
      assert.equal(load(text).ok, false);
    }),
    { numRuns: 15 },
  );
});

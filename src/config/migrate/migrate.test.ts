import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { formatDiagnostics } from "../../translation/problems/diagnostics.ts";
import { loadConfig } from "../load.ts";
import { migrateConfig } from "./migrate.ts";

function migrated(text: string): string {
  const result = migrateConfig("gateway.yaml", text);
  assert.ok(result.ok, result.ok ? "" : formatDiagnostics(result.diagnostics));
  return result.text;
}

/** `line:column: path: message` of each problem. */
function problems(text: string): string[] {
  const result = migrateConfig("gateway.yaml", text);
  return result.ok
    ? []
    : result.diagnostics.map((each) => `${each.line}:${each.column}: ${each.path}: ${each.message}`);
}

test("moved fields keep their comments; variables and everything else stay", () => {
  const text = migrated(`# yaml-language-server: $schema=./schema/config.json

# The gateway of the shop.
config:
  # where people look
  adminAddr: "off" # no admin
  # what is written
  logging:
    # Only what went wrong.
    filter: 'response.code >= 500' # five hundreds
    fields:
      # who
      add:
        user: jwt.sub # the user
        pod: "'$POD_NAME'"
      remove: [http.version]
  # traces
  tracing:
    # the collector
    otlpEndpoint: https://\${COLLECTOR:-otel}:4317/x
    headers: # who we are
      authorization: Bearer $TOKEN
    otlpProtocol: http
    randomSampling: "0.1"
    clientSampling: true
    fields: {add: {pod: env.podName}, remove: [http.path]}

binds:
- port: 8080 # the port
  listeners:
  - routes: []
`);
  assert.equal(
    text,
    `# yaml-language-server: $schema=./schema/config.json

# The gateway of the shop.
config:
  # where people look
  adminAddr: "off" # no admin
frontendPolicies:
  # what is written
  accessLog:
    # Only what went wrong.
    filter: 'response.code >= 500' # five hundreds
    # who
    add:
      user: jwt.sub # the user
      pod: "'$POD_NAME'"
    remove: [http.version]
  # traces
  tracing:
    # the collector
    host: \${COLLECTOR:-otel}:4317
    path: /x
    policies:
      backendTLS: {}
      requestHeaderModifier:
        set:
          # who we are
          authorization: Bearer $TOKEN
    protocol: http
    randomSampling: "0.1"
    clientSampling: true
    attributes: {pod: env.podName}
    remove: [http.path]

binds:
- port: 8080 # the port
  listeners:
  - routes: []
`,
  );
});

test("existing objects are extended; an emptied config is removed", () => {
  const text = migrated(`binds: []
# of the process
config:
    logging:
        filter: "true"
frontendPolicies:
    # sizes
    http: { maxBufferSize: 1 }
    logging:
        add: { a: "'1'" }
`);
  assert.equal(
    text,
    `binds: []
# of the process
frontendPolicies:
    # sizes
    http: { maxBufferSize: 1 }
    logging:
        add: { a: "'1'" }
        filter: "true"
`,
  );
  const loaded = loadConfig({ kind: "text", text }, {});
  assert.ok(loaded.ok);
});

test("JSON stays JSON", () => {
  const before = { config: { logging: { level: "warn", filter: "true" } }, binds: [{ port: 1, listeners: [] }] };
  const after = {
    config: { logging: { level: "warn" } },
    frontendPolicies: { accessLog: { filter: "true" } },
    binds: before.binds,
  };
  assert.equal(migrated(JSON.stringify(before, undefined, 4)), `${JSON.stringify(after, undefined, 4)}\n`);
  assert.equal(migrated(JSON.stringify(before)), `${JSON.stringify(after)}\n`);
});

test("maps on one line, and maps without anything in them", () => {
  assert.equal(
    migrated('{config: {logging: {filter: "true"}}, binds: []}\n'),
    '{frontendPolicies: {accessLog: {filter: "true"}}, binds: []}\n',
  );
  assert.equal(
    migrated('config: {logging: {filter: "true"}}\nfrontendPolicies:\n'),
    'frontendPolicies:\n  accessLog:\n    filter: "true"\n',
  );
});

test("the collector of traces, in every form", () => {
  const tracing = (text: string): unknown => parse(migrated(`config: {tracing: ${text}}`)).frontendPolicies.tracing;
  assert.deepEqual(tracing("{otlpEndpoint: 'c:4317'}"), { host: "c:4317" });
  assert.deepEqual(tracing("{otlpEndpoint: 'http://c/'}"), { host: "c:80" });
  assert.deepEqual(tracing("{otlpEndpoint: 'https://c/x/'}"), {
    host: "c:443",
    path: "/x",
    policies: { backendTLS: {} },
  });
  assert.deepEqual(tracing("{otlpEndpoint: 'http://[::1]:1/x', path: /y}"), { host: "[::1]:1", path: "/y" });
  assert.deepEqual(tracing('{otlpEndpoint: "http://${H:-c}:${P:-1}"}'), { host: "${H:-c}:${P:-1}" });
  for (const endpoint of ["c", "$C", "http://$C", "ftp://c:1", "http://c:1 x"])
    assert.match(
      problems(`config: {tracing: {otlpEndpoint: "${endpoint}"}}`).join(),
      /is not an address with a port/,
      endpoint,
    );
});

test("a file without moved fields is unchanged, to the byte", () => {
  for (const text of ["config:   {logging: {level: info}}\n\n\n# end", "binds: [ ]", "{}"]) {
    assert.deepEqual(migrateConfig("a", text), { ok: true, text, changed: false });
    assert.deepEqual(migrateConfig("a", migrated(text)), { ok: true, text, changed: false });
  }
});

test("a field that cannot be moved is reported with its position", () => {
  assert.deepEqual(problems("config: [\n"), ["1:9: : not valid YAML: this bracket is never closed"]);
  assert.deepEqual(
    problems("a: &a {logging: {filter: 'true'}}\nconfig: *a\nfrontendPolicies: 1\n").concat(
      problems("config: {logging: {filter: 'true'}}\nfrontendPolicies: {http: &x {}, accessLog: *x}\n"),
    ),
    [
      "2:9: config: is an alias; replace it with its value",
      "3:19: frontendPolicies: is not an object; correct it first",
      "2:44: frontendPolicies.accessLog: is an alias; replace it with its value",
    ],
  );
  assert.deepEqual(
    problems("config: {logging: {filter: &f 'true'}}\na: *f\nfrontendPolicies: {accessLog: {add: {}}}\n"),
    ["1:1: : the anchor would come after its alias; replace the alias with its value"],
  );
  assert.deepEqual(problems("- a"), ["1:1: : is not a configuration; nothing was changed"]);
  assert.deepEqual(problems(""), ["1:1: : is not a configuration; nothing was changed"]);
  assert.deepEqual(
    problems(`config:
  logging:
    filter: "true"
    fields:
      add: {a: "1"}
      added: {}
  tracing:
    otlpEndpoint: collector
    endpoint: x
frontendPolicies:
  accessLog:
    filter: "false"
    add: {}
`),
    [
      "3:5: config.logging.filter: frontendPolicies.accessLog.filter is set too; keep one of the two",
      "5:7: config.logging.fields.add: frontendPolicies.accessLog.add is set too; keep one of the two",
      "6:7: config.logging.fields.added: is neither add nor remove; correct it first",
      "8:19: config.tracing.otlpEndpoint: is not an address with a port, such as http://collector:4317; correct it first",
      "9:5: config.tracing.endpoint: has no place in frontendPolicies.tracing; remove it",
    ],
  );
  assert.deepEqual(problems("config:\n  logging: {fields: [a]}\n  tracing: {path: /x}\n"), [
    "2:21: config.logging.fields: is not an object with add and remove; correct it first",
    "3:3: config.tracing.otlpEndpoint: is required: where traces are sent, such as http://collector:4317",
  ]);
  assert.deepEqual(problems("config: {tracing: {otlpEndpoint: 'c:1'}}\nfrontendPolicies: {tracing: {host: 'd:1'}}\n"), [
    "1:10: config.tracing: frontendPolicies.tracing is set too; keep one of the two",
  ]);
});

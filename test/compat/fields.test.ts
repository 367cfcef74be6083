/**
 * Configurations of this family carry over: every field of fields.txt is accepted, which a file in cases/ shows, or it is in
 * one table with the message that its user reads.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { exportJWK, generateKeyPair } from "jose";
import { parse } from "yaml";
import { loadConfig } from "../../src/config/load.ts";
import { dumpIr, dumpSettings } from "../../src/main/config-dump.ts";
import { formatDiagnostics } from "../../src/translation/problems/diagnostics.ts";
import { noOpenssl, TestCa } from "../helpers/certificates.ts";
import { LOCATIONS, UNSUPPORTED } from "./unsupported.ts";

const CASES = new URL("cases/", import.meta.url);
const FIELDS = new URL("fields.txt", import.meta.url);
/** What a route sets for its backends is the same policy as at the backend. */
const EITHER = ["routes.policies", "routes.backends.policies"];
const ENV = { OIDC_COOKIE_SECRET: "00".repeat(32) };

const folder = mkdtempSync(join(tmpdir(), "tracegate-fields-"));
after(() => rmSync(folder, { recursive: true }));

/** What the cases name lies beside them. */
async function writeFiles(): Promise<void> {
  using ca = new TestCa();
  const { cert, key } = ca.issue("backend.example");
  const { publicKey } = await generateKeyPair("ES256");
  const keys = [{ ...(await exportJWK(publicKey)), kid: "one", alg: "ES256" }];
  const discovery = {
    issuer: "https://issuer.example",
    authorization_endpoint: "https://issuer.example/auth",
    token_endpoint: "https://issuer.example/token",
    jwks_uri: "https://issuer.example/jwks",
  };
  const files = {
    "cert.pem": cert,
    "key.pem": key,
    "ca.pem": readFileSync(ca.certFile, "utf8"),
    "secret.txt": "s3cret",
    htpasswd: "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n",
    "jwks.json": JSON.stringify({ keys }),
    "discovery.json": JSON.stringify(discovery),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
}

function load(name: string, text: string): ReturnType<typeof loadConfig> {
  const path = join(folder, name);
  writeFileSync(path, text);
  return loadConfig({ kind: "files", paths: [path] }, ENV);
}

/** Paths of fields without indices, with `*` for the name of a gateway; those below an element of a list too. */
function pathsOf(value: unknown, path: readonly string[], paths: Set<string>): Set<string> {
  if (path.length > 0) paths.add(path.join("."));
  if (Array.isArray(value)) for (const element of value) pathsOf(element, path, paths);
  else if (typeof value === "object" && value !== null)
    for (const [key, inner] of Object.entries(value))
      pathsOf(inner, [...path, path.length === 1 && path[0] === "gateways" ? "*" : key], paths);
  return paths;
}

/** Values below `value` with the keys that they stand at. */
function* leaves(value: unknown, key = ""): Generator<readonly [key: string, value: unknown]> {
  if (typeof value !== "object" || value === null) yield [key, value];
  else for (const [inner, each] of Object.entries(value)) yield* leaves(each, Array.isArray(value) ? key : inner);
}

/** Names of fields that are durations in the schema. */
function durationFields(schema: unknown, names = new Set<string>()): Set<string> {
  if (typeof schema !== "object" || schema === null) return names;
  for (const [key, value] of Object.entries(schema)) {
    if (value !== null && (value as { readonly title?: unknown }).title === "duration") names.add(key);
    durationFields(value, names);
  }
  return names;
}

/** What a dump shows of a configuration that nothing has been sent to. */
function dumpOf({ ir, config }: Extract<ReturnType<typeof loadConfig>, { readonly ok: true }>): unknown {
  const live = {
    ports: {},
    endpoints: new Map(),
    calls: new Map(),
    locality: config.locality,
    hidden: new Set<string>(),
  };
  return { ...dumpIr(ir, live), config: dumpSettings(config, ir, {}) };
}

/** Sections of fields.txt, each with the paths of its fields. */
function sections(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  let fields: string[] = [];
  let path: string[] = [];
  for (const line of readFileSync(FIELDS, "utf8").split("\n")) {
    if (line.startsWith("# ")) {
      fields = [];
      found.set(line.slice(2), fields);
    } else if (line !== "") {
      const [, indent = "", name = ""] = /^( *)([^:!]+)!?:/.exec(line) ?? [];
      path = [...path.slice(0, indent.length / 2), name];
      fields.push(path.join("."));
    }
  }
  return found;
}

suite("fields of configurations of this family", { skip: noOpenssl }, () => {
  before(writeFiles);

  const accepted = new Set<string>();
  const shown: (readonly [field: string, value: unknown])[] = [];
  for (const name of readdirSync(CASES))
    test(`cases/${name} is accepted`, () => {
      const text = readFileSync(new URL(name, CASES), "utf8");
      const loaded = load(name, text);
      assert.ok(loaded.ok, loaded.ok ? "" : formatDiagnostics(loaded.diagnostics));
      pathsOf(parse(text), [], accepted);
      shown.push(...leaves(dumpOf(loaded)));
    });

  test("dumps show times as texts, whatever the field", () => {
    const fields = durationFields(
      JSON.parse(readFileSync(new URL("../../schema/config.json", import.meta.url), "utf8")),
    );
    // Settings have names of their own in dumps.
    for (const setting of ["connectionTerminationDeadline", "connectionMinTerminationDeadline"]) fields.delete(setting);
    for (const setting of ["terminationMaxDeadline", "terminationMinDeadline"]) fields.add(setting);
    // Dumps have the certificates of listeners, not how they are ordered.
    fields.delete("propagation");
    assert.ok(fields.size > 15);
    const missing = [...fields].filter(
      (field) => !shown.some(([key, value]) => key === field && typeof value === "string"),
    );
    assert.deepEqual(missing, []);
    assert.deepEqual(
      shown.filter(([key, value]) => fields.has(key) && typeof value === "number"),
      [],
    );
  });

  for (const { field, config, message, warned } of UNSUPPORTED)
    test(`${field} is ${warned === true ? "accepted with a warning" : "rejected with an error"} that says why`, () => {
      const loaded = load("unsupported.yaml", config);
      assert.equal(loaded.ok, warned === true, loaded.ok ? "accepted" : formatDiagnostics(loaded.diagnostics));
      assert.match(formatDiagnostics(loaded.ok ? loaded.warnings : loaded.diagnostics), message);
    });

  for (const [section, fields] of sections())
    test(`every field of ${section} is accepted by a case, or known to be unsupported`, () => {
      const places = LOCATIONS[section];
      assert.ok(places !== undefined, "has a place in configurations");
      const unsupported = UNSUPPORTED.map(({ field }) => field);
      const missing = fields.filter((field) => {
        const paths = [...places, ...(field.startsWith("backendAuth.") ? EITHER : [])].map(
          (place) => `${place}.${field}`,
        );
        return !paths.some(
          (path) => accepted.has(path) || unsupported.some((known) => path === known || path.startsWith(`${known}.`)),
        );
      });
      assert.deepEqual(missing, []);
    });
});

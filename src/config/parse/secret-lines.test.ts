import assert from "node:assert/strict";
import { test } from "node:test";
import { linesWithoutSecrets } from "./secret-lines.ts";

const HIDDEN = new Set(["authorization", "x-tenant-pin"]);
const shown = (text: string): string => linesWithoutSecrets(text, HIDDEN).join("\n");

/** Each has `hunter2` where a secret is, and `shown` where none is. */
const TEXTS: Readonly<Record<string, string>> = {
  "a field": "apiKey: hunter2\nname: shown",
  "all lines of a value": "policies:\n  apiKey:\n    keys:\n    - value: hunter2\n\n      also: hunter2\n  cors: shown",
  "the policy apiKey":
    "apiKey:\n  shwn: hunter2\n  - hunter2\n  mode: shown\n  location: # shown\n    header: { name: x-api-key } # shown\n    token: hunter2\n  keys:\n  - key: hunter2\n    mode: hunter2\n  ky:\n    mode: hunter2",
  "fields of another secret that are named like those of apiKey": "token:\n  mode: hunter2\nname: shown",
  "text over lines that reads like fields of apiKey": 'apiKey: "x\n  mode: hunter2"\nname: shown',
  "a list as deep as its field": "keys:\n- hunter2\n- hunter2\nname: shown",
  "a block of text": "tls:\n  key: |\n    hunter2\n    token: hunter2\n  name: shown",
  "a comment in a value": "key:\n# shown\n  hunter2\nname: shown",
  "a comment with a secret": "# token: hunter2\nname: shown",
  "JSON in many lines without indentation": '{\n"key": [\n"hunter2",\n"hunter2"\n],\n"name": "shown"\n}',
  "JSON with the value on the next line": '{\n"token":\n"hunter2",\n"name": "shown"\n}',
  "text in quotes over lines": 'a: {\ntoken: "x\nhunter2",\nname: shown }',
  "a header": "headers:\n- name: authorization\n  value:\n    exact: hunter2\n- name: shown",
  "a header whose name is written last": "headers:\n- value: hunter2\n  name: X-Tenant-Pin\n- name: shown",
  "a header in one line": "headers: [{ name: x-tenant-pin, value: hunter2 }]\nname: shown",
  "a header that is named like a secret": "headers: [{ name: x-shop-token, value: hunter2 }]\nname: shown",
  "a header in braces over lines": "headers:\n- { name: authorization,\n    value: hunter2 }\n- name: shown",
  "a header that is a field": "set:\n  x-tenant-pin: hunter2\n  x-other: shown",
  "a parameter": "query:\n  - name: access_token\n    value: hunter2\n  - name: shown",
  "what is defined elsewhere": "x:\n  a: &later hunter2\n  b: shown\nkey: *later",
  "what is defined elsewhere for that": "x: &one\n  hunter2: hunter2\ny: &two [*one]\nkey: *two\nname: shown",
  "a URL": "host: http://me:hunter2@shop.example/?token=hunter2\nname: shown",
};

for (const [what, text] of Object.entries(TEXTS))
  test(`${what}: secrets are left out, the rest is shown, line by line`, () => {
    const result = shown(text);
    assert.doesNotMatch(result, /hunter2/);
    assert.equal(result.split("shown").length, text.split("shown").length, result);
    assert.equal(result.split("\n").length, text.split("\n").length);
  });

test("the name of a secret field is shown, and numbers of tokens", () => {
  assert.equal(shown("  - apiKey: hunter2"), "  - apiKey: <redacted>");
  assert.equal(shown("- maxTokens: 5\n  tokensPerFill: 1"), "- maxTokens: 5\n  tokensPerFill: 1");
  assert.equal(shown("apiKey:\n  keys:\n  - hunter2"), "apiKey: <redacted>\n  keys: <redacted>\n  <redacted>");
  assert.equal(shown("key: |\n  hunter2-token: x"), "key: <redacted>\n  <redacted>");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { writeFile } from "./write-file.ts";

test("where a route comes from is a comment, whatever is in it", () => {
  const at = { file: "nginx.conf", line: 1, column: 1 };
  const text = writeFile({
    ports: [{ name: "p80", port: 80, listeners: [{ name: "default", at, hostname: "*" }] }],
    routes: [
      {
        name: "r",
        from: "location /a\r\nadminAddr: 0.0.0.0:15000\n",
        at,
        listeners: ["p80/default"],
        matches: [],
        policies: {},
        backends: [{ host: "a.example:80" }],
      },
    ],
    backends: [],
    frontendPolicies: {},
    findings: [],
  });
  assert.match(text, /^ *# location \/a adminAddr: 0\.0\.0\.0:15000 *$/m);
  assert.deepEqual(Object.keys(parse(text) as object), ["gateways", "routes"]);
});

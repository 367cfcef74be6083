import assert from "node:assert/strict";
import { test } from "node:test";
import { ListenerTable } from "./hosts.ts";

const table = new ListenerTable(
  ["*", "*.example.com", "a.example.com", "*.b.example.com", "a.example.com"].map((hostname, index) => ({
    hostname,
    value: `${hostname} #${index}`,
  })),
);

const cases = {
  "a.example.com": "a.example.com #2",
  "x.example.com": "*.example.com #1",
  "x.y.example.com": "*.example.com #1",
  "x.b.example.com": "*.b.example.com #3",
  "b.example.com": "*.example.com #1",
  "example.com": "* #0",
  ".example.com": "* #0",
  "xexample.com": "* #0",
  "[::1]": "* #0",
  "": "* #0",
};

for (const [host, expected] of Object.entries(cases)) {
  test(`host "${host}" goes to listener ${expected}`, () => assert.equal(table.find(host), expected));
}

test("without a listener for any host, an unknown host finds none", () => {
  const some = new ListenerTable([{ hostname: "*.example.com", value: 1 }]);
  assert.equal(some.find("example.org"), undefined);
  assert.equal(some.find("x.example.com"), 1);
});

test("an empty hostname matches any host, falsy values included", () => {
  assert.equal(new ListenerTable([{ hostname: "", value: 0 }]).find("example.org"), 0);
});

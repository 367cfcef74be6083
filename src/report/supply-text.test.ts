import assert from "node:assert/strict";
import { test } from "node:test";
import type { Supply } from "../cel/index.ts";
import { hintText, lackText } from "./supply-text.ts";

test("what is not known has the options that supply it, as a shell takes them", () => {
  const said = (supply: Supply) => lackText({ what: "it", supply });
  assert.equal(said({ kind: "field", name: "x-a" }), "not known: it; write -H 'x-a: …' with its value");
  assert.equal(said({ kind: "field", name: "it's" }), "not known: it; write -H 'it'\\''s: …' with its value");
  assert.equal(said({ kind: "parameter", name: "a&b" }), "not known: it; write --url-query 'a&b'=… with its value");
  assert.equal(
    said({ kind: "assumption", name: "jwt", examples: [`{"sub":"o'brien"}`] }),
    `not known: it; write --assume 'jwt={"sub":"o'\\''brien"}'`,
  );
  assert.equal(said({ kind: "field" }), "not known: it; write -H 'name: value' for each");
  assert.equal(said({ kind: "parameter", name: "page" }), "not known: it; write --url-query page=… with its value");
  assert.equal(
    said({ kind: "assumption", name: "jwt", examples: ['{"sub":"a"}', "valid", "invalid"] }),
    'not known: it; write --assume \'jwt={"sub":"a"}\', jwt=valid or jwt=invalid',
  );
  assert.equal(lackText({ what: "it" }), "not known: it", "nothing would make it known");
  const later: object = { kind: "telepathy" };
  assert.equal(lackText({ what: "it", supply: later as Supply }), "not known: it", "a way of a later version");
});

test("a hint about an assumption is that of the command line; others are as they are", () => {
  const ways = [
    ["extAuthz", "allow"],
    ["extAuthz", '{"status":401}'],
  ] as const;
  assert.equal(
    hintText("h", { assume: "extAuthz", ways }),
    "write --assume extAuthz=allow or 'extAuthz={\"status\":401}'",
  );
  assert.equal(
    hintText("h", { assume: "extAuthz", ways: [], value: "deny" }),
    "leave out --assume extAuthz=deny, or check which route the request gets",
  );
  for (const about of [undefined, { request: "url" }, { assume: "extAutz" }]) assert.equal(hintText("h", about), "h");
});

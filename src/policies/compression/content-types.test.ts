import assert from "node:assert/strict";
import { test } from "node:test";
import { compileContentTypes } from "./content-types.ts";

test("patterns cover types and suffixes, in any case and with parameters", () => {
  const isListed = compileContentTypes(["text/*", "application/*+json", "image/SVG+xml"]);
  for (const type of ["text/html", "Text/HTML; charset=utf-8", "application/problem+json;v=1", "image/svg+xml"])
    assert.ok(isListed(type), type);
  for (const type of ["", "text", "application/json", "application/x+jsonp", "image/png", "x-text/html"])
    assert.ok(!isListed(type), type);
});

test("event streams match only by their full name, gRPC never", () => {
  assert.ok(!compileContentTypes(["text/*"])("text/event-stream"));
  assert.ok(compileContentTypes(["text/event-stream"])("text/event-stream;charset=utf-8"));
  assert.ok(!compileContentTypes(["application/*"])("application/grpc+proto"));
});

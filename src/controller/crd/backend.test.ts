import assert from "node:assert/strict";
import { test } from "node:test";
import { backendSpec } from "./backend.ts";

test("the host of a static backend is a bare name or address", () => {
  const problem = (host: string) =>
    backendSpec.safeParse({ static: { host, port: 443 } }).error?.issues.map(({ path, message }) => [path, message]);
  for (const host of ["legacy.example.com", "192.0.2.1", "2001:db8::1", "::1"]) assert.equal(problem(host), undefined);
  for (const host of ["https://legacy.example.com", "legacy.example.com:443", "legacy.example.com/v1"])
    assert.deepEqual(problem(host), [
      [["static", "host"], "write a host name or an IP address, without scheme, port and path"],
    ]);
});

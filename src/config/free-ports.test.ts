import assert from "node:assert/strict";
import { test } from "node:test";
import { FREE_PORTS } from "./free-ports.ts";
import { loadConfig } from "./load.ts";

test("servers without a configured address use free ports, the others use theirs", () => {
  const source = { kind: "text", text: 'config: { statsAddr: "127.0.0.1:19020" }\nbinds: []', name: "test" } as const;
  const loaded = loadConfig(source, { [FREE_PORTS]: "1", ADMIN_ADDR: "127.0.0.1:19000" });
  assert.ok(loaded.ok);
  const port = (address: object) => ("port" in address ? address.port : undefined);
  const { adminAddr, statsAddr, readinessAddr } = loaded.config;
  assert.deepEqual([adminAddr, statsAddr, readinessAddr].map(port), [19000, 19020, 0]);
});

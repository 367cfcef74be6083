import assert from "node:assert/strict";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { appRoot } from "../base/app-root.ts";
import { quickstartText, tgctlCommand } from "./quickstart-text.ts";

type Listener = Parameters<typeof quickstartText>[0][number]["listeners"][number];

function commandsOf(protocol: Listener["protocol"], hostname = ""): string[] {
  const bind = { key: "bind/0", mode: "standard", listeners: [{ protocol, hostname }] } as const;
  const text = quickstartText([bind], { "bind/0": 3000 }, ["a.yaml"], { echo: 9099, tgctl: "tgctl" });
  return text.split("\n").flatMap((line) => (line.startsWith("  ") ? line.trim() : []));
}

test("the quick start prints commands that its listener understands", () => {
  assert.deepEqual(commandsOf("HTTP"), [
    'curl -s "http://localhost:3000/?name=you"',
    "tgctl proxy trace --local --port 3000 -- http://localhost:3000/",
  ]);
  assert.deepEqual(commandsOf("HTTPS", "*.example.com"), [
    'curl -sk --resolve www.example.com:3000:127.0.0.1 "https://www.example.com:3000/?name=you"',
    "tgctl proxy trace --local --port 3000 -- https://www.example.com:3000/ -k",
  ]);
  assert.deepEqual(
    commandsOf("TLS", "shop.example")[0],
    ["curl -vk --resolve shop.example:3000:127.0.0.1 https://shop.example:3000/"][0],
  );
  assert.equal(commandsOf("TCP")[0], String.raw`printf 'GET / HTTP/1.0\r\n\r\n' | nc localhost 3000`);
  assert.equal(commandsOf("UDP")[0], "printf hello | nc -u -w 1 localhost 3000");
});

test("tgctl is named as another terminal finds it", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-path-"));
  t.after(() => rmSync(folder, { recursive: true }));
  symlinkSync(`${appRoot}bin/tgctl`, join(folder, "tgctl"));
  assert.equal(tgctlCommand(`/nowhere:${folder}`, "/"), "tgctl");
  assert.equal(tgctlCommand("/nowhere", appRoot), "bin/tgctl");
  assert.equal(tgctlCommand("/nowhere", `${appRoot}examples`), "../bin/tgctl");
});

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { GatewayProcess } from "../../helpers/gateway.ts";

test("the access log goes to a file in the format of Apache, which SIGUSR2 opens again; all else stays on standard output", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-access-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "access.log");
  const policies = { directResponse: { status: 200, body: "hello" } };
  const binds = [{ port: 0, listeners: [{ routes: [{ name: "r", policies }] }] }];
  const logging = { format: "combined", output: { file } };
  const env = { LOG_FORMAT: "combined" };
  // Its lines are text here, so the helper does not read them.
  await using gateway = await GatewayProcess.launch({ config: { logging }, binds }, { env });
  let printed = "";
  gateway.process.stdout?.on("data", (part: string) => {
    printed += part;
  });
  await gateway.until(() => printed.includes(" ready"), "the gateway to be ready");
  const port = Number(/ serving .*port=(\d+)/.exec(printed)?.[1]);
  const read = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");
  const ask = async (path: string): Promise<void> => {
    const headers = { "user-agent": 'a"b', referer: "https://u:secret@a.example/?access_token=secret" };
    await (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).text();
  };

  await ask("/one?access_token=secret");
  await gateway.until(() => read(file).endsWith("\n"), "the line");
  const line =
    /^127\.0\.0\.1 - - \[\d\d\/\w{3}\/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET \/one\?access_token=<redacted> HTTP\/1\.1" 200 5 "https:\/\/<redacted>@a\.example\/\?access_token=<redacted>" "a\\"b"\n$/;
  assert.match(read(file), line);
  renameSync(file, `${file}.1`);
  gateway.process.kill("SIGUSR2");
  await gateway.until(() => existsSync(file), "the file");
  await ask("/two");
  const socket = connect(port, "127.0.0.1");
  socket.end("no request\r\n\r\n");
  await text(socket);
  await gateway.until(() => read(file).split("\n").length === 3, "two lines");
  assert.match(
    read(file),
    /^[^\n]* "GET \/two HTTP\/1\.1" 200 5 [^\n]*\n127\.0\.0\.1 - - \[[^\]]*\] "-" 400 - "-" "-"\n$/,
  );
  assert.match(read(`${file}.1`), line);
  assert.ok(!printed.includes("GET"), printed);
});

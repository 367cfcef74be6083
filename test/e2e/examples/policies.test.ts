import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { appRoot } from "../../../src/base/app-root.ts";
import { TestGateway } from "../../helpers/gateway.ts";

const FOLDER = `${appRoot}/examples/policies`;
const run = promisify(execFile);
/** `#   curl … → 200`: what a reader tries, and the status that it gives. */
const TRY = /^#\s+curl (.*?)\s+→ (\d{3})$/gm;
/** `# env: NAME=value`: what the example needs in its environment. */
const ENV = /^# env: (\w+)=(.*)$/gm;

const noCurl = await run("curl", ["--version"]).then(
  () => false,
  () => "no curl here",
);

/** Says what it has been asked, as the echo server of `npm start` does. */
const echo = createServer((request, response) => {
  request.resume();
  response.end(`${request.method} ${request.url}\n${JSON.stringify(request.headers)}\n`);
});
await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
after(() => echo.close());

for (const name of readdirSync(FOLDER).filter((each) => each.endsWith(".yaml"))) {
  test(`examples/policies/${name} runs and does what it says`, { skip: noCurl }, async () => {
    const text = readFileSync(`${FOLDER}/${name}`, "utf8");
    const attempts = [...text.matchAll(TRY)];
    assert.ok(attempts.length > 0, "says what to try");
    const echoPort = (echo.address() as AddressInfo).port;
    const env = Object.fromEntries([...text.matchAll(ENV)].map(([, key = "", value = ""]) => [key, value]));
    const servers = { adminAddr: "127.0.0.1:0", statsAddr: "off", readinessAddr: "off" };
    const own = `config: ${JSON.stringify(servers)}\n${text}`;
    assert.ok(!/^config:/m.test(text), "leaves the gateway's own servers alone");
    await using gateway = await TestGateway.start(
      own.replaceAll("9099", String(echoPort)).replace(/^( *-? *)port: 3000$/m, "$1port: 0"),
      { env },
    );
    for (const [line, args = "", status] of attempts) {
      const words = [...args.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
      const asked = words
        .filter((word) => word !== "-i")
        .map((word) => word.replace("localhost:3000", `127.0.0.1:${gateway.port()}`));
      const { stdout } = await run("curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-m", "20", ...asked]);
      assert.equal(stdout, status, line);
    }
  });
}

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, suite, test } from "node:test";
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

const names = readdirSync(FOLDER).filter((each) => each.endsWith(".yaml"));
const texts = new Map(names.map((name) => [name, readFileSync(`${FOLDER}/${name}`, "utf8")]));
const environments = [...texts.values()].flatMap((text) => [...text.matchAll(ENV)]);
const env = Object.fromEntries(environments.map(([, key = "", value = ""]) => [key, value]));

// One gateway takes the examples one after the other: it starts once, and every example is a reload of another one too.
suite("examples of policies", { skip: noCurl, concurrency: 1 }, () => {
  let gateway: TestGateway | undefined;
  after(() => gateway?.stop());

  for (const [name, text] of texts)
    test(`examples/policies/${name} runs and does what it says`, async () => {
      const attempts = [...text.matchAll(TRY)];
      assert.ok(attempts.length > 0, "says what to try");
      assert.ok(!/^config:/m.test(text), "leaves the gateway's own servers alone");
      const config = withOwnPorts(text);
      if (gateway === undefined) gateway = await TestGateway.start(config, { env });
      else assert.equal(await gateway.reconfigure(config), "applied");
      const host = `127.0.0.1:${gateway.port()}`;
      for (const [line, args = "", status] of attempts) {
        const words = [...args.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
        const asked = words.filter((word) => word !== "-i").map((word) => word.replace("localhost:3000", host));
        const { stdout } = await run("curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-m", "20", ...asked]);
        assert.equal(stdout, status, line);
      }
    });
});

/** The example on ports that are free. */
function withOwnPorts(text: string): string {
  const servers = { adminAddr: "127.0.0.1:0", statsAddr: "off", readinessAddr: "off" };
  const echoPort = (echo.address() as AddressInfo).port;
  const own = text.replaceAll("9099", String(echoPort)).replace(/^( *-? *)port: 3000$/m, "$1port: 0");
  return `config: ${JSON.stringify(servers)}\n${own}`;
}

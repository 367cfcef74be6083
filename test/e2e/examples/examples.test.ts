import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { appRoot } from "../../../src/base/app-root.ts";
import { startEcho } from "../../../src/main/run.ts";
import {
  type Descriptor,
  OVER_LIMIT,
  RateLimitRequest,
  RateLimitResponse,
  SHOULD_RATE_LIMIT,
} from "../../helpers/envoy/rate-limit.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";

const FOLDER = `${appRoot}/examples`;
/** `RateLimitResponse.Code.OK` of the protocol. */
const OK = 1;
/** Not run here: the default configuration, examples with two ports or without HTTP, and those whose servers other tests start. */
const KNOWN_SILENT = [
  "acme.yaml",
  "addresses.yaml",
  "default.yaml",
  "gateways.yaml",
  "opentelemetry.yaml",
  "recipes/acme.yaml",
  "recipes/grpc.yaml",
  "recipes/mtls.yaml",
  "recipes/tls-passthrough.yaml",
  "token-exchange/backend-auth.yaml",
  "token-exchange/config.yaml",
  "udp.yaml",
];
const run = promisify(execFile);
/** `#   curl … → 200 with TEXT`: a command, the status that it prints, and a text in the head or body. */
const TRY = /^#\s+curl (.*?)\s+→ (\d{3})(?: with (.+))?$/gm;
/** `# env: NAME=value`: what the example needs in its environment. */
const ENV = /^# env: (\w+)=(.*)$/gm;

const noCurl = await run("curl", ["--version"]).then(
  () => false,
  () => "no curl here",
);

const echo = await startEcho(0);
after(() => echo.close());

const names = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter(
  // test/e2e/config/several-files.test.ts runs the folder conf.d, test/e2e/kubernetes/examples.test.ts the folder kubernetes.
  (each) => each.endsWith(".yaml") && !/^(?:cases|conf\.d|kubernetes)\//.test(each),
);
const texts = new Map(names.sort().map((name) => [name, readFileSync(`${FOLDER}/${name}`, "utf8")]));
const environments = [...texts.values()].flatMap((text) => [...text.matchAll(ENV)]);

test("every example says what to try", () => {
  const silent = [...texts].filter(([, text]) => text.search(TRY) < 0).map(([name]) => name);
  assert.deepEqual(silent, KNOWN_SILENT);
});

// One gateway takes the examples one after the other: it starts once, and every example is a reload of another one too.
suite("examples", { skip: noCurl, concurrency: 1 }, () => {
  let gateway: TestGateway | undefined;
  const env = Object.fromEntries(environments.map(([, key = "", value = ""]) => [key, value]));
  let limiter: GrpcServer | undefined;
  before(async () => {
    limiter = await rateLimitService();
    env.RATE_LIMIT_HOST = `127.0.0.1:${limiter.port}`;
  });
  after(async () => {
    await gateway?.stop();
    await limiter?.stop();
  });

  for (const [name, example] of texts) {
    if (KNOWN_SILENT.includes(name)) continue;
    test(`examples/${name} runs and does what it says`, async () => {
      const text = example.replaceAll("9099", String((echo.address() as AddressInfo).port));
      const attempts = [...text.matchAll(TRY)];
      assert.ok(!/^ *(admin|stats|readiness)Addr:/m.test(text), "leaves the gateway's own servers alone");
      const config = withOwnPorts(text);
      if (gateway === undefined) gateway = await TestGateway.start(config, { env });
      else assert.equal(await gateway.reconfigure(config), "applied");
      const host = `127.0.0.1:${gateway.port()}`;
      for (const [line, args = "", status, content = ""] of attempts) {
        const words = [...args.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
        const asked = words.filter((word) => word !== "-i").map((word) => word.replace(/localhost:300\d/, host));
        const { stdout } = await run("curl", ["-s", "-i", "-w", "\n%{http_code}", "-m", "20", ...asked]);
        assert.ok(stdout.endsWith(`\n${status}`), `${line}\n${stdout}`);
        assert.ok(stdout.includes(content), `${line}\n${stdout}`);
      }
    });
  }
});

/** The example on ports that are free. */
function withOwnPorts(text: string): string {
  const served = text.replace(/^( *-? *)port: 300\d$/m, "$1port: 0");
  const config = `config:\n  adminAddr: "127.0.0.1:0"\n  statsAddr: "off"\n  readinessAddr: "off"\n`;
  return /^config:$/m.test(served) ? served.replace(/^config:\n/m, config) : config + served;
}

/** The limits that examples/ratelimiting-global.yaml describes: two requests of each user. */
function rateLimitService(): Promise<GrpcServer> {
  const counts = new Map<string, number>();
  const over = (entries: Descriptor["entries"], hits: number): boolean => {
    const user = entries?.[0]?.value ?? "";
    const count = (counts.get(user) ?? 0) + hits;
    counts.set(user, count);
    return count > 2;
  };
  return GrpcServer.start({
    [SHOULD_RATE_LIMIT]: {
      unary(message) {
        const { descriptors = [] } = RateLimitRequest.decode(message);
        const refused = descriptors.some(({ entries, hits_addend }) => over(entries, Number(hits_addend?.value ?? 1)));
        return RateLimitResponse.encode({ overall_code: refused ? OVER_LIMIT : OK });
      },
    },
  });
}

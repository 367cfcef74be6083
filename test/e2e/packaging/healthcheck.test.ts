import assert from "node:assert/strict";
import { test } from "node:test";
import { invokeProgram } from "../../../src/cli/fixtures/invoke.ts";
import { tracegate } from "../../../src/main/commands.ts";
import { probeReadiness } from "../../../src/main/healthcheck.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { closedPort, RawUpstream } from "../../helpers/raw-peer.ts";

const healthcheck = (url: string) => invokeProgram(tracegate, ["healthcheck", "--url", url]);

test("healthcheck exits with 0 for a gateway that is ready", async () => {
  const routes = [{ policies: { directResponse: { status: 204 } } }];
  const gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  try {
    const { code, stdout } = await healthcheck(`${gateway.url("readiness")}/healthz/ready`);
    assert.deepEqual([code, stdout], [0, "ready\n"]);
    assert.equal((await healthcheck(`${gateway.url("readiness")}/other`)).code, 1);
  } finally {
    await gateway.stop();
  }
});

test("healthcheck exits with 1 and says why for one that is not ready, does not respond or does not run", async () => {
  await using starting = await RawUpstream.answering(
    () => "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 10\r\n\r\nnot ready\n",
  );
  const { code, stdout } = await healthcheck(`http://127.0.0.1:${starting.port}/healthz/ready`);
  assert.deepEqual([code, stdout], [1, "not ready\n"]);
  const stopped = await healthcheck(`http://127.0.0.1:${await closedPort()}/healthz/ready`);
  assert.equal(stopped.code, 1);
  assert.match(stopped.stdout, /ECONNREFUSED/);
  await using silent = await RawUpstream.listen(() => Promise.resolve());
  const late = await probeReadiness(`http://127.0.0.1:${silent.port}/healthz/ready`, 20);
  assert.equal(late.ready, false);
  assert.match(late.answer, /no response within 20 ms/);
});

test("healthcheck rejects a URL that is not that of a readiness server", async () => {
  for (const url of ["127.0.0.1:15021", "https://127.0.0.1:15021/", "http://"])
    assert.equal((await healthcheck(url)).code, 2, url);
});

/** The recipe that puts the web view behind a password: what each of its users may do. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { parse } from "yaml";
import { appRoot } from "../../../src/base/app-root.ts";
import { ask } from "../../helpers/admin/raw-request.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { choose, levelOf } from "../../helpers/log-levels.ts";
import { inChromium, shows, until } from "../../helpers/web-view.ts";

const RECIPE = readFileSync(`${appRoot}examples/recipes/web-view.yaml`, "utf8");
const HOST = "gateway.localhost";
const LOOKS = "alice:wonderland";
const OPERATES = "bob:builder";

const open = inChromium();
let gateway: TestGateway;

before(async () => {
  // A name that every browser finds on this machine.
  const recipe = RECIPE.replace("port: 3000", "port: 0").replaceAll("gateway.example", HOST);
  gateway = await TestGateway.start(parse(recipe) as object);
});
after(() => gateway?.stop());

/** A request of a browser at the host of the view; `user`: with its password. */
function send(user: string, method: string, target: string, fields: readonly string[] = []): ReturnType<typeof ask> {
  const authorization = `authorization: Basic ${Buffer.from(user).toString("base64")}`;
  const host = `host: ${HOST}:${gateway.port()}`;
  return ask(`127.0.0.1:${gateway.port()}`, method, target, [host, authorization, ...fields]);
}

/** As the page of the view sends it. */
function fromPage(user: string, method: string, target: string, ...fields: readonly string[]): ReturnType<typeof ask> {
  return send(user, method, target, [`origin: http://${HOST}:${gateway.port()}`, ...fields]);
}

const PROBE = `/probe/${encodeURIComponent("service/nothing/here")}`;
const CHANGES = ["/logging?level=debug", "/logging?reset", PROBE];

test("who may look opens the view, asks its questions, and changes nothing", async () => {
  assert.equal((await send("alice:wrong", "GET", "/overview")).status, 401);
  for (const path of ["/overview", "/requests", "/backends", "/logging"])
    assert.equal((await fromPage(LOOKS, "GET", path)).status, 200, path);
  // What is wrong with the question is said by the gateway, not by the route.
  for (const path of ["/explain", "/impact"]) assert.equal((await fromPage(LOOKS, "POST", path)).status, 400, path);
  for (const path of [...CHANGES, "/page-token", "/quitquitquit"]) {
    assert.equal((await fromPage(LOOKS, "POST", path)).status, 403, path);
    assert.equal((await send(LOOKS, "POST", path)).status, 403, path);
  }
  assert.equal((await send(LOOKS, "GET", "/logging")).body, "current log level is info\n");
});

test("who may operate changes something from the page with its token, and from no other page", async () => {
  const answer = await fromPage(OPERATES, "POST", "/page-token");
  assert.equal(answer.status, 200, answer.body);
  const { token } = JSON.parse(answer.body) as { token: string };
  const shown = `x-tracegate-page-token: ${token}`;
  for (const path of CHANGES) {
    assert.equal((await fromPage(OPERATES, "POST", path)).status, 403, `${path} without the token`);
    // No backend has that key.
    assert.equal((await fromPage(OPERATES, "POST", path, shown)).status, path === PROBE ? 404 : 200, path);
    // A page of the application, in the browser of somebody who has given the password before.
    const other = `origin: http://localhost:${gateway.port()}`;
    assert.equal((await send(OPERATES, "POST", path, [other, shown])).status, 403, `${path} from another page`);
  }
  assert.equal(
    (await send(OPERATES, "POST", "/page-token", [`origin: http://localhost:${gateway.port()}`])).status,
    403,
  );
  assert.equal((await fromPage(OPERATES, "POST", "/quitquitquit", shown)).status, 403, "config.admin.quit");
  assert.equal((await send(OPERATES, "GET", "/logging")).body, "current log level is info\n");
});

test("the application has none of it", async () => {
  const answer = await ask(`127.0.0.1:${gateway.port()}`, "GET", "/config/status", ["host: localhost"]);
  assert.equal(answer.status, 503, "its backend does not run here");
});

test("the page tells who may only look that a change is refused, and shows the level as it is", async (t) => {
  const at = `${HOST}:${gateway.port()}`;
  // The browser remembers the password.
  const page = await open(t, `http://${LOOKS}@${at}/logging`);
  if (page === undefined) return;
  await page.open(`http://${at}/ui/#/config`);
  await shows(page, "Log info");
  await choose(page, "xds", "trace");
  await shows(page, "You may not change anything here: authorization failed");
  await until(page, `${levelOf("xds")} === "info"`);
  assert.equal((await send(LOOKS, "GET", "/logging")).body, "current log level is info\n");
});

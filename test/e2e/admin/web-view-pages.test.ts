/** What holds for every page of the web view, on a gateway with traffic. A new page needs a line in `SHOWN`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { appRoot } from "../../../src/base/app-root.ts";
import { testBackend } from "../../helpers/backend.ts";
import type { Page } from "../../helpers/chromium.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { inChromium, isAccessible, shows } from "../../helpers/web-view.ts";

/** By the path of a page: the place that is opened, and a text that it shows once it has its answers. */
const SHOWN: Readonly<Record<string, readonly [hash: string, text: string]>> = {
  "/": ["#/", "authorization"],
  "/requests": ["#/requests", "/cart/4"],
  "/r/": ["#/r/denied-1", "What decided"],
  "/trace": ["#/trace?expression=request.path == '/nothing'", "Waiting for the next request"],
  "/backends": ["#/backends", "127.0.0.1:9"],
  "/backends/": [
    `#/backends/${encodeURIComponent("/default/default/bind/0/web/default/down/backend0")}`,
    "127.0.0.1:9",
  ],
  "/explain": ["#/explain?url=http%3A%2F%2Fshop.example%2Fadmin%2Fsecret", "policy authorization"],
  "/expression": [`#/expression?expression=${encodeURIComponent('request.path.startsWith("/cart")')}`, "Variables"],
  "/impact": ["#/impact", "Nothing is applied"],
  "/routes": ["#/routes", "default/admin"],
  "/routes/": [`#/routes/${encodeURIComponent("default/default/bind/0/web/default/admin")}`, "Policies in effect"],
  "/config": ["#/config?at=binds[0].listeners[0].routes[0]", "inlinePolicies"],
  "/policies": ["#/policies", "authorization"],
  "/policies/": ["#/policies/authorization", "rules"],
  "/docs": ["#/docs", "Recorded requests"],
  "/docs/": ["#/docs/recorder", "where"],
};
/** Pixels of windows, and how far they are zoomed: the last but one is 1,600 pixels wide at 200 %. */
const WINDOWS = [
  { width: 1600, zoom: 1 },
  { width: 2560, zoom: 1 },
  { width: 800, zoom: 2 },
  { width: 400, zoom: 1 },
] as const;

const backend = testBackend((request, response) => {
  response.statusCode = request.url?.startsWith("/broken") ? 502 : 200;
  response.end("hello");
});
let gateway: TestGateway;

before(async () => {
  const backends = [{ host: backend.host }];
  const routes = [
    {
      name: "admin",
      matches: [{ path: { pathPrefix: "/admin" } }],
      policies: { authorization: { rules: [{ deny: 'request.path != "/admin/ok"' }] } },
      backends,
    },
    { name: "shop", matches: [{ path: { pathPrefix: "/" } }], backends },
    { name: "store", matches: [{ path: { pathPrefix: "/store" } }], backends: [{ backend: "/store" }] },
    { name: "down", matches: [{ path: { pathPrefix: "/down" } }], backends: [{ host: "127.0.0.1:9" }] },
  ];
  const store = { name: "store", host: backend.host };
  gateway = await TestGateway.start({
    backends: [store],
    binds: [{ port: 0, listeners: [{ name: "web", routes }] }],
  });
  const send = (path: string, id: string) =>
    fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers: { "x-request-id": id } }).then((answer) =>
      answer.text(),
    );
  for (const path of ["/broken", "/down", "/store", "/cart/1", "/cart/2", "/cart/3", "/cart/4"])
    await send(path, "some");
  await send("/admin/secret", "denied-1");
});
after(() => gateway?.stop());

const open = inChromium();

test("each page has a line in this test", () => {
  const pages = readFileSync(`${appRoot}ui/pages/pages.ts`, "utf8");
  const paths = [...pages.matchAll(/\{ path: "([^"]+)"/g)].map(([, path]) => path);
  assert.deepEqual(Object.keys(SHOWN).sort(), paths.sort());
});

for (const [hash, text] of Object.values(SHOWN))
  test(`${hash} in windows of all sizes, light and dark, zoomed, without motion, and by keyboard alone`, async (t) => {
    const page = await open(t, `${gateway.url("admin")}/ui/${hash}`);
    if (page === undefined) return;
    await shows(page, text);
    for (const { width, zoom } of WINDOWS) {
      await isAccessible(page, width, zoom);
      assert.deepEqual(await page.evaluate(OVERFLOWING), [], `${width} pixels`);
      assert.deepEqual(await page.evaluate(MOVING), [], `${width} pixels`);
      assert.deepEqual(await unreached(page), [], `${width} pixels`);
    }
    assert.deepEqual(page.messages, []);
    assert.deepEqual([...new Set(page.requests.map((url) => new URL(url).origin))], [gateway.url("admin")]);
  });

/** What is wider than the window or stands beside it, other than in a part that scrolls by itself. */
const OVERFLOWING = `(() => {
  const scrolls = (element) => element !== null && element !== document.body && element.tagName !== "MAIN" &&
    (/auto|scroll/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  const wide = [document.documentElement, document.querySelector("main")].filter((part) => part.scrollWidth > part.clientWidth);
  const beside = [...document.querySelectorAll("a, button, input, select, textarea, summary")].filter((control) => {
    const { left, right, width } = control.getBoundingClientRect();
    return width > 0 && (left < 0 || right > innerWidth) && !scrolls(control.parentElement);
  });
  return [...wide, ...beside].map((element) => element.outerHTML.slice(0, 200));
})()`;

/** What would move although the system asks for less motion. */
const MOVING = `[...document.querySelectorAll("*")].filter((element) => {
  const { animationName, transitionDuration } = getComputedStyle(element);
  return animationName !== "none" || transitionDuration.split(",").some((time) => parseFloat(time) > 0);
}).map((element) => element.outerHTML.slice(0, 200))`;

/** Controls that the Tab key does not reach, or that do not show that they have the focus; the last key leads out again. */
async function unreached(page: Page): Promise<unknown> {
  const count = await page.evaluate(`(() => {
    const controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter(
      (control) => control.tabIndex >= 0 && !control.disabled && control.checkVisibility({ visibilityProperty: true }),
    );
    window.missing = new Set(controls);
    document.activeElement.blur();
    getSelection().removeAllRanges();
    window.watch = ({ target }) => {
      const { outlineStyle, outlineWidth } = getComputedStyle(target);
      const { top, bottom } = target.getBoundingClientRect();
      const isSeen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 && bottom > 0 && top < innerHeight;
      if (isSeen) window.missing.delete(target);
    };
    addEventListener("focusin", window.watch);
    return controls.length;
  })()`);
  assert.ok(Number(count) > 0);
  const tab = { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 };
  // One more than there are controls, because the browser itself may take its turn.
  for (let pressed = 0; pressed <= Number(count); pressed++) {
    await page.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...tab });
    await page.send("Input.dispatchKeyEvent", { type: "keyUp", ...tab });
  }
  return await page.evaluate(
    `removeEventListener("focusin", window.watch), [...window.missing].map((control) => control.outerHTML.slice(0, 200))`,
  );
}

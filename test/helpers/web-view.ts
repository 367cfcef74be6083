/** Tests of the web view in a real Chromium: pages, keys, and what a page shows. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, type TestContext } from "node:test";
import { bundleWebView } from "../../scripts/bundle/web-view.ts";
import { codeOf } from "../../src/base/errors.ts";
import { Chromium, type Page } from "./chromium.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE_MS = 10_000;

/**
 * Builds the view, and starts a Chromium for the tests of the suite or file that calls this. The result opens a page of its own at a URL, 1,600
 * pixels wide and light; without a Chromium on the PATH it skips the test and resolves to undefined.
 */
export function inChromium(): (t: TestContext, url: string) => Promise<Page | undefined> {
  let browser: Chromium | undefined;
  before(async () => {
    // A run of all tests has it already, in the package.
    await bundleWebView();
    try {
      browser = await Chromium.start();
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  });
  after(() => browser?.[Symbol.asyncDispose]());
  return async (t, url) => {
    if (browser === undefined) {
      t.skip("no chromium on the PATH");
      return undefined;
    }
    const page = await browser.page();
    await look(page, "light", 1600);
    await page.open(url);
    return page;
  };
}

/** What axe finds wrong with a page as it is shown now: the rule and the first element. */
export async function violations(page: Page): Promise<unknown> {
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(AXE);
  return await page.evaluate(
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))",
  );
}

/**
 * Shows a page in a color scheme, in a window of this many pixels, which `zoom` makes as much larger on the screen. The system asks for
 * less motion.
 */
export async function look(page: Page, scheme: "light" | "dark", width: number, zoom = 1): Promise<void> {
  const features = { "prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce" };
  await page.send("Emulation.setEmulatedMedia", {
    features: Object.entries(features).map(([name, value]) => ({ name, value })),
  });
  await page.send("Emulation.setDeviceMetricsOverride", { width, height: 600, deviceScaleFactor: zoom, mobile: false });
}

/** Asserts that axe finds nothing wrong and nothing is wider than the window, light and dark, in windows of these widths. */
export async function fits(page: Page, ...widths: readonly number[]): Promise<void> {
  for (const width of widths)
    for (const scheme of ["light", "dark"] as const) {
      await look(page, scheme, width);
      assert.equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false, `${width} pixels`);
      assert.deepEqual(await violations(page), [], `${scheme}, ${width} pixels`);
    }
}

/** All text of a page. */
export function textOf(page: Page): Promise<string> {
  return page.evaluate("document.body.textContent").then(String);
}

/** Waits until the page shows a text. */
export async function shows(page: Page, text: string): Promise<void> {
  await until(page, `document.querySelector('#app').textContent.includes(${JSON.stringify(text)})`);
}

/** Waits until an expression is true on the page, looked at with each of its frames. */
export async function until(page: Page, expression: string): Promise<void> {
  const found = await page.evaluate(`new Promise((resolve) => {
    const end = performance.now() + ${PATIENCE_MS};
    const look = () => (${expression}) ? resolve(true) : performance.now() > end ? resolve(false) : setTimeout(look, 10);
    look();
  })`);
  assert.equal(found, true, `${expression}: the page shows ${await textOf(page)}`);
}

/** Keys that write no character, and Enter. */
const CODES: ReadonlyMap<string, number> = new Map([
  ["Tab", 9],
  ["Enter", 13],
  ["Escape", 27],
  ["ArrowUp", 38],
  ["ArrowDown", 40],
]);

/** Presses and releases a key, then waits until the page has drawn. */
export async function press(page: Page, key: string): Promise<void> {
  const named = CODES.get(key);
  const code = named ?? key.toUpperCase().charCodeAt(0);
  const text = key === "Enter" ? "\r" : named === undefined ? key : "";
  await page.send("Input.dispatchKeyEvent", { type: "keyDown", key, text, windowsVirtualKeyCode: code });
  await page.send("Input.dispatchKeyEvent", { type: "keyUp", key, windowsVirtualKeyCode: code });
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))");
}

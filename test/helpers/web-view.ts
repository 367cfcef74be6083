/** Tests of the web view in a real Chromium: pages, keys, and what a page shows. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, type TestContext } from "node:test";
import { bundleWebView } from "../../scripts/bundle/web-view.ts";
import { codeOf } from "../../src/base/errors.ts";
import { Chromium, type Page } from "./chromium.ts";
import { PACKAGED } from "./programs.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE_MS = 60_000;

/** Milliseconds without a test file that uses the browser, after which it ends. */
const IDLE_MS = 2000;

/** One Chromium for all files of a process: its start takes a second of CPU. */
class SharedChromium {
  #browser: Promise<Chromium> | undefined;
  #users = 0;
  #idle: NodeJS.Timeout | undefined;

  /** Rejects with code ENOENT if there is no Chromium on the PATH. */
  borrow(): Promise<Chromium> {
    this.#users++;
    clearTimeout(this.#idle);
    this.#browser ??= Chromium.start();
    return this.#browser;
  }

  giveBack(): void {
    if (--this.#users > 0) return;
    this.#idle = setTimeout(() => {
      const ended = this.#browser;
      this.#browser = undefined;
      // Whoever has borrowed it knows why it did not start.
      ended?.then((browser) => browser[Symbol.asyncDispose]()).catch(() => {});
    }, IDLE_MS);
  }
}

const chromium = new SharedChromium();
let built: Promise<unknown> | undefined;

/**
 * Builds the view, and lends a Chromium to the tests of the suite or file that calls this. The result opens a page of its own at a URL, 1,600
 * pixels wide and light, until its test ends; without a Chromium on the PATH it skips the test and resolves to undefined.
 */
export function inChromium(): (t: TestContext, url: string) => Promise<Page | undefined> {
  let browser: Chromium | undefined;
  before(async () => {
    if (!PACKAGED) built ??= bundleWebView();
    await built;
    try {
      browser = await chromium.borrow();
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  });
  after(() => chromium.giveBack());
  return async (t, url) => {
    if (browser === undefined) {
      t.skip("no chromium on the PATH");
      return undefined;
    }
    const page = await browser.page();
    t.after(() => page.close());
    await look(page, "light", 1600);
    await page.open(url);
    return page;
  };
}

/** The rules of axe about colors, all that differs between light and dark. */
const COLOR_RULES = ["color-contrast", "link-in-text-block"];

/** What axe finds wrong with a page as it is shown now: the rule and the first element. `rules`: only these. */
export async function violations(page: Page, rules?: readonly string[]): Promise<unknown> {
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(AXE);
  const options = rules === undefined ? {} : { runOnly: { type: "rule", values: rules } };
  return await page.evaluate(
    `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))`,
  );
}

/** Asserts that axe finds nothing wrong, light and dark, in a window of this many pixels. */
export async function isAccessible(page: Page, width: number, zoom = 1): Promise<void> {
  for (const scheme of ["light", "dark"] as const) {
    await look(page, scheme, width, zoom);
    const found = await violations(page, scheme === "dark" ? COLOR_RULES : undefined);
    assert.deepEqual(found, [], `${scheme}, ${width} pixels`);
  }
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
  for (const width of widths) {
    await isAccessible(page, width);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false, `${width} pixels`);
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

/**
 * npm run browser
 * Opens what `tgctl trace export` writes in a real Chromium: the page is styled, loads and runs nothing, opens and closes its events, and
 * is readable in light, dark and narrow; the network panel imports the archive. BROWSER_PICTURES names a folder for pictures of the page.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { messageOf } from "../../src/base/errors.ts";
import type { Fields } from "../../src/base/fields.ts";
import { htmlPage } from "../../src/report/export/html.ts";
import { EVENTS } from "../../src/report/fixtures/trace.ts";
import { rowsOf } from "../../src/report/rows.ts";
import { Chromium, type Page } from "../helpers/chromium.ts";
import { runSuite } from "./lib/suite.ts";
import { ToolMissing } from "./lib/tools.ts";

const GOLDEN = fileURLToPath(new URL("../golden/traces/", import.meta.url));
const HTML = join(GOLDEN, "retried.html");

/** Each with a page of its own; throws what is wrong. */
type Case = (page: Page, file: (name: string, text: string) => string) => Promise<void>;

const CASES: Readonly<Record<string, Case>> = {
  async "the page loads nothing else, and nothing on it is refused"(page) {
    const url = pathToFileURL(HTML).href;
    await page.open(url);
    assert.deepEqual(page.requests, [url]);
    assert.deepEqual(page.messages, []);
    assert.equal(await page.evaluate("document.styleSheets.length"), 1);
    assert.equal(await page.evaluate("getComputedStyle(document.querySelector('.tree')).borderRadius"), "6px");
  },
  async "an event opens and closes by mouse and keyboard"(page) {
    await page.open(pathToFileURL(HTML).href);
    const isOpen = () => page.evaluate("document.querySelectorAll('details')[4].open");
    assert.equal(await isOpen(), false);
    const place = await page.evaluate(
      "(() => { const summary = document.querySelectorAll('summary')[4]; summary.scrollIntoView(); const { x, y } = summary.getBoundingClientRect(); return { x: x + 20, y: y + 8 }; })()",
    );
    for (const type of ["mousePressed", "mouseReleased"])
      await page.send("Input.dispatchMouseEvent", { type, ...(place as Fields), button: "left", clickCount: 1 });
    assert.equal(await isOpen(), true);
    for (const type of ["keyDown", "keyUp"])
      await page.send("Input.dispatchKeyEvent", {
        type,
        key: "Enter",
        code: "Enter",
        text: "\r",
        windowsVirtualKeyCode: 13,
      });
    assert.equal(await isOpen(), false);
    assert.match(
      String(await page.evaluate("document.querySelectorAll('details pre')[4].textContent")),
      /cart +selected\n[\s\S]*selectedRoute: /,
    );
  },
  async "light, dark and narrow: text stands out, nothing is wider than the window"(page) {
    await page.open(pathToFileURL(HTML).href);
    for (const scheme of ["light", "dark"])
      for (const width of [1300, 380]) {
        await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
        const size = { width, height: 1400, deviceScaleFactor: 1, mobile: false };
        await page.send("Emulation.setDeviceMetricsOverride", size);
        const { data } = await page.send("Page.captureScreenshot");
        const folder = process.env.BROWSER_PICTURES;
        if (folder !== undefined)
          writeFileSync(join(folder, `${scheme}-${width}.png`), Buffer.from(String(data), "base64"));
        assert.equal(
          await page.evaluate("document.documentElement.scrollWidth > innerWidth"),
          false,
          `${scheme} ${width}`,
        );
        const contrasts = (await page.evaluate(CONTRASTS)) as readonly [text: string, contrast: number][];
        assert.ok(contrasts.length > 100);
        // WCAG 2.2, 1.4.3
        for (const [text, contrast] of contrasts)
          assert.ok(contrast >= 4.5, `${scheme}: ${text} has a contrast of ${contrast}`);
      }
  },
  async "markup and scripts in a trace are text"(page, file) {
    const evil = `</pre><script>document.title="owned"</script><img src=x onerror="document.title='owned'">`;
    const text = JSON.stringify(EVENTS).replaceAll("curl/8.5.0", JSON.stringify(evil).slice(1, -1));
    const url = file("evil.html", htmlPage(rowsOf(JSON.parse(text))));
    await page.open(url);
    assert.match(String(await page.evaluate("document.title")), /^POST /);
    assert.equal(await page.evaluate("document.querySelectorAll('script, img').length"), 0);
    assert.ok(String(await page.evaluate("document.querySelector('.tree').textContent")).includes(evil));
    assert.deepEqual(page.requests, [url]);
  },
  async "a script that someone adds to the page does not run"(page, file) {
    const html = readFileSync(HTML, "utf8");
    const added = html.replace(
      "</body>",
      `<script>document.title="owned"</script><img src="https://example.com/x"></body>`,
    );
    await page.open(file("added.html", added));
    assert.match(String(await page.evaluate("document.title")), /^POST /);
    assert.equal(page.messages.length, 2);
    for (const message of page.messages) assert.match(message, /violates the following Content Security Policy/);
  },
  async "the network panel imports the archive"(page) {
    for (const name of ["denied.har", "retried.har"]) {
      const har = JSON.parse(readFileSync(join(GOLDEN, name), "utf8"));
      // Chromium's own code for "Import HAR file".
      const shown = await page.evaluate(`import("./models/har/har.js").then(async ({ HARFormat, Importer }) => {
        const { log } = new HARFormat.HARRoot(${JSON.stringify(har)});
        return Promise.all(Importer.Importer.requestsFromHARLog(log).map(async (request) => ({
          url: request.url(),
          method: request.requestMethod,
          status: request.statusCode,
          time: Math.round(request.duration * 1e6) / 1e3,
          fields: request.requestHeaders().length,
          text: (await request.requestContentData()).text,
        })));
      })`);
      const expected = har.log.entries.map((entry: Entry) => ({
        url: entry.request.url,
        method: entry.request.method,
        status: entry.response.status,
        time: entry.time,
        fields: entry.request.headers.length,
        text: entry.response.content.text ?? "",
      }));
      assert.deepEqual(shown, expected);
    }
  },
};

interface Entry {
  readonly time: number;
  readonly request: { readonly url: string; readonly method: string; readonly headers: readonly unknown[] };
  readonly response: { readonly status: number; readonly content: { readonly text?: string } };
}

/** The contrast of each element that has text of its own with the background that it stands on. */
const CONTRASTS = `(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const luminance = (color) => {
    const [r, g, b] = [...rgba(color)].slice(0, 3).map((each) => {
      const part = each / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backOf = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (rgba(color)[3] > 0) return color;
    }
    return "white";
  };
  for (const each of document.querySelectorAll("details")) each.open = true;
  return [...document.body.querySelectorAll("*")]
    .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== ""))
    .filter((element) => !element.closest("svg"))
    .map((element) => {
      const [dark, light] = [luminance(getComputedStyle(element).color), luminance(backOf(element))].sort((a, b) => a - b);
      return [element.textContent.slice(0, 40), (light + 0.05) / (dark + 0.05)];
    });
})()`;

await runSuite("browser", async () => {
  await using browser = await Chromium.start(process.env.CHROMIUM).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT"
      ? new ToolMissing("Chromium is not on the PATH; on Debian: apt-get install chromium")
      : error;
  });
  const folder = mkdtempSync(join(tmpdir(), "browser-"));
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return pathToFileURL(path).href;
  };
  const failed: string[] = [];
  try {
    for (const [name, run] of Object.entries(CASES)) {
      const isPanel = name.startsWith("the network panel");
      const page = await browser.page(isPanel ? "devtools://devtools/bundled/devtools_app.html" : undefined);
      try {
        await run(page, file);
      } catch (error) {
        failed.push(`${name}: ${messageOf(error)}`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  process.stdout.write(`browser: ${Object.keys(CASES).length} cases\n`);
  return failed;
});

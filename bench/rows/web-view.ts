import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { bundleWebView } from "../../scripts/bundle/web-view.ts";
import { Chromium, type Page } from "../../test/helpers/chromium.ts";
import { Child, cpuMicros, NODE, residentMiB } from "../lib/proc.ts";
import { median, percentile } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { installPackage } from "../peers/package.ts";
import { oneRoute, onOneCore, type RunningTracegate, startTracegate } from "../peers/tracegate.ts";
import { stopProxies } from "./compare.ts";

const LOAD = fileURLToPath(new URL("../load/open-loop.ts", import.meta.url));
/** Requests per second while the list is open. */
const RATE = 200;
/** Rows of the list. */
const LISTED = 1000;
/** Memory is read so often, and the median of a window counts. */
const SAMPLE_MS = 100;

/** What was seen in a window of time. */
interface Window {
  readonly mib: number;
  /** Share of a core that the gateway used. */
  readonly share: number;
}

/** The web view in a real Chromium: bytes, time to content, frames of a live list, and what it costs the gateway. */
export const webView: Row = {
  name: "web-view",
  title: "web view; builds the package first",
  async run(bench) {
    const { size, all } = await bundleWebView();
    const program = `${installPackage(bench)}/bin/tracegate`;
    const origin = await startOrigin(bench);
    const proxy = await startTracegate(bench, { ...onOneCore(bench), routes: oneRoute(origin.port), program });
    const place = `http://127.0.0.1:${proxy.adminPort}/ui/#`;
    await using browser = await Chromium.start();
    const times: number[] = [];
    for (let round = 0; round < bench.rounds; round++)
      times.push(await timeToContent(await browser.page(), `${place}/`));

    // Has the same traffic and no view: a gateway grows for minutes, because its recorder fills and V8 compiles.
    const control = await startTracegate(bench, { ...onOneCore(bench), routes: oneRoute(origin.port), program });
    const loads = await Promise.all([proxy, control].map((each) => startLoad(bench, each)));
    const page = await browser.page();
    // Until the recorder has as many as the list shows, and the code of the gateway is warm.
    await delay((1000 * LISTED) / RATE + 1000 * bench.seconds);
    const [without, controlBefore] = await Promise.all([watch(bench, proxy), watch(bench, control)]);
    await page.open(`${place}/requests`);
    await delay(1000 * bench.seconds);
    const [withOne, controlAfter, frames] = await Promise.all([
      watch(bench, proxy),
      watch(bench, control),
      framesPerSecond(page, bench.seconds),
    ]);
    const listed = Number(await page.evaluate("parseInt(document.querySelector('.status').textContent, 10)"));
    for (const load of loads) {
      load.process.stdin?.end();
      await load.output();
    }
    await stopProxies([proxy, control, origin]);
    const grown = controlAfter.mib - controlBefore.mib;
    return {
      measures: measuresOf({ size, all, times, without, withOne, grown, frames, listed }),
      samples: { times, without, withOne, grown, frames },
    };
  },
};

interface Found {
  readonly size: number;
  readonly all: number;
  readonly times: readonly number[];
  readonly without: Window;
  readonly withOne: Window;
  /** MiB by which the gateway without a view has grown meanwhile. */
  readonly grown: number;
  readonly frames: number;
  readonly listed: number;
}

function measuresOf({ size, all, times, without, withOne, grown, frames, listed }: Found): Measure[] {
  return [
    {
      measure: "web view: bytes of the first page with gzip",
      tracegate: `${number(size / 1024)} KiB (with the other pages ${number(all / 1024)} KiB)`,
      peers: "",
      value: size / 1024,
      limits: { better: "less", must: 80, aim: 60 },
    },
    {
      measure: "web view: navigation to content on loopback, without cache",
      tracegate: `${number(median(times))} ms (max ${number(percentile(times, 1))})`,
      peers: "",
      value: median(times),
      unit: "ms",
      limits: { better: "less", must: 300, aim: 150 },
    },
    {
      measure: `web view: frames per second of a list of ${LISTED} requests at ${RATE}/s`,
      tracegate: `${number(frames)} (${listed} listed)`,
      peers: "",
      value: frames,
      // A window of time seldom ends with a frame.
      limits: { better: "more", must: 59, aim: 59 },
    },
    {
      measure: `web view: the gateway's share of a core meanwhile, in percent`,
      tracegate: `${number(100 * withOne.share)} (without a view open ${number(100 * without.share)})`,
      peers: "",
      value: 100 * withOne.share,
      limits: { better: "less", must: 10, aim: 10 },
    },
    {
      measure: "web view: memory that one open view adds",
      tracegate: `${number(withOne.mib)} MiB, before ${number(without.mib)} MiB; without a view +${number(grown)} MiB meanwhile`,
      peers: "",
      value: withOne.mib - without.mib - grown,
      unit: "MiB",
      limits: { better: "less", must: 8, aim: 8 },
    },
  ];
}

/** Milliseconds from the navigation to the frame after the one that has the answers of the gateway. */
async function timeToContent(page: Page, url: string): Promise<number> {
  await page.send("Network.setCacheDisabled", { cacheDisabled: true });
  await page.send("Page.addScriptToEvaluateOnNewDocument", {
    source: `window.content = new Promise((resolve) => {
      new MutationObserver((_, observer) => {
        if (document.querySelector("main h2") === null) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      }).observe(document, { childList: true, subtree: true });
    })`,
  });
  await page.open(url);
  return Number(await page.evaluate("window.content"));
}

/** Frames that the page draws in so many seconds, per second. */
async function framesPerSecond(page: Page, seconds: number): Promise<number> {
  return Number(
    await page.evaluate(`new Promise((resolve) => {
      const start = performance.now();
      let frames = 0;
      const draw = (now) => {
        frames++;
        if (now - start < ${1000 * seconds}) requestAnimationFrame(draw);
        else resolve((1000 * frames) / (now - start));
      };
      requestAnimationFrame(draw);
    })`),
  );
}

async function startLoad(bench: Bench, proxy: RunningTracegate): Promise<Child> {
  const hosts = join(bench.folder, "web-view-hosts");
  await writeFile(hosts, "shop.example\nadmin.example\n");
  // It ends with its standard input.
  const seconds = (10 * LISTED) / RATE + 10 * bench.seconds;
  const command = [NODE, LOAD, String(proxy.port), String(RATE), String(seconds), hosts];
  return new Child("open loop", command, { cpus: bench.cores.load, stdout: "pipe", folder: bench.folder });
}

/** Memory and CPU of the gateway for the length of a round. */
async function watch(bench: Bench, { child }: RunningTracegate): Promise<Window> {
  const start = performance.now();
  const before = cpuMicros(child.pid);
  const mib: number[] = [];
  while (performance.now() - start < 1000 * bench.seconds) {
    mib.push(residentMiB(child.pid));
    await delay(SAMPLE_MS);
  }
  const micros = 1000 * (performance.now() - start);
  return { mib: median(mib), share: (cpuMicros(child.pid) - before) / micros };
}

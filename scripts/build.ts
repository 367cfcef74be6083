/**
 * `npm run build`: makes dist/ for the published package and for images, from scratch, so that no removed module remains: a bundle
 * for each program and each kind of thread, the code that V8 compiles of them, the web view, the licenses of what is in them, and the commit.
 */
import { rmSync, writeFileSync } from "node:fs";
import { ORIGIN_FILE, originOfBuild } from "../src/base/build-info.ts";
import { bundle } from "./bundle/bundle.ts";
import { recordCodeCache } from "./bundle/code-cache.ts";
import { writeNotices } from "./bundle/notices.ts";
import { bundleWebView } from "./bundle/web-view.ts";
import { root } from "./lib/files.ts";

const dist = `${root}dist`;
rmSync(dist, { recursive: true, force: true });
const { files, modules } = await bundle(dist);
writeFileSync(`${root}${ORIGIN_FILE}`, `${JSON.stringify(originOfBuild(root, process.env))}\n`);
const view = await bundleWebView();
writeNotices(`${dist}/THIRD-PARTY-NOTICES.txt`, new Set([...modules, ...view.modules]));
await recordCodeCache(dist);
process.stdout.write(
  `build: ${files.length} bundles in dist/, web view of ${Math.ceil(view.all / 1024)} KiB with gzip, its first page ${Math.ceil(view.size / 1024)} KiB\n`,
);

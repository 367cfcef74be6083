/** `npm run build`: compiles src/ to dist/ for the published package, from nothing, so that no removed module lives on. */
import { rmSync } from "node:fs";
import { root } from "./lib/files.ts";
import { run } from "./lib/process.ts";

rmSync(`${root}dist`, { recursive: true, force: true });
const { code, output } = await run("tsc", ["-p", "tsconfig.build.json"]);
process.stdout.write(output);
process.exitCode = code;

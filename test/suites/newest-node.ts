/**
 * npm run newest-node
 * Runs the tests of the data plane with the newest LTS release of Node.js, in a copy of the checkout: the launchers take the one that is installed
 * beside them.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectFiles } from "../../scripts/lib/files.ts";
import { appRoot } from "../../src/base/app-root.ts";
import { runSuite } from "./lib/suite.ts";
import { NEWEST_NODE, nodeOf } from "./lib/tools.ts";

/** Where versions of Node.js differ for the gateway: sockets, TLS, threads and HTTP. */
const FILES = [
  "src/{net,recorder,tls,http,upstream,proxy,worker}/**/*.test.ts",
  "test/e2e/{connect,grpc,http,http2,lifecycle,proxy-protocol,tcp,tls,udp,upstream,upstream-h2}/*.test.ts",
];
/** Milliseconds for all of them. */
const LIMIT = 1_200_000;

await runSuite("newest-node", async () => {
  const copy = mkdtempSync(join(tmpdir(), "tracegate-newest-node-"));
  try {
    for (const name of [...projectFiles(), ".git"]) cpSync(join(appRoot, name), join(copy, name), { recursive: true });
    const modules = join(copy, "node_modules");
    const others = readdirSync(join(appRoot, "node_modules")).filter((name) => name !== "node" && name !== ".cache");
    // Copies, not links: bundles name the files that they are made of.
    for (const name of others)
      cpSync(join(appRoot, "node_modules", name), join(modules, name), { recursive: true, verbatimSymlinks: true });
    symlinkSync(nodeOf(NEWEST_NODE), join(modules, "node"));
    const { status } = spawnSync("npm", ["test", "--", "--deny-skips", ...FILES], {
      cwd: copy,
      stdio: "inherit",
      timeout: LIMIT,
    });
    return status === 0 ? [] : [`tests with Node.js ${NEWEST_NODE}`];
  } finally {
    rmSync(copy, { recursive: true });
  }
});

/**
 * npm run e2e:cluster [-- [--no-image] [--no-install] file…]
 * Installs tracegate into a Kubernetes cluster by the Helm chart and runs the tests of this folder against it.
 *
 * The cluster is that of `KUBECONFIG` (its nodes must be able to pull TRACEGATE_IMAGE, and this machine must reach pods and
 * load balancer addresses), else the test cluster whose scripts are in the folder GATEWAY_CLUSTER, by default
 * `../shared/cluster` beside the checkout: it is started, and the image is built and loaded.
 */
import { globSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { run as runTests } from "node:test";
import { spec } from "node:test/reporters";
import { appRoot } from "../../src/base/app-root.ts";
import { prepareCluster, reexecInside } from "./lib/setup.ts";

/** Milliseconds for one test: rolling a Deployment takes its time. */
const TEST_LIMIT = 600_000;

const args = process.argv.slice(2);
const flags = new Set(args.filter((each) => each.startsWith("--")));
const named = args.filter((each) => !each.startsWith("--"));

await reexecInside(import.meta.filename, () =>
  prepareCluster({ image: !flags.has("--no-image"), install: !flags.has("--no-install") }),
);

const files = named.length > 0 ? named : globSync("test/cluster/*.e2e.ts", { cwd: appRoot }).sort();
const tests = runTests({ files, cwd: appRoot, concurrency: 1, timeout: TEST_LIMIT });
tests.on("test:fail", () => {
  process.exitCode = 1;
});
await pipeline(tests, new spec(), process.stdout, { end: false });

import { join } from "node:path";
import { appRoot, runBundlesOf } from "../../src/base/app-root.ts";

/** The package that a run of all tests installs (scripts/test.ts): a gateway or a worker starts from it with a quarter of the CPU. */
const installed = process.env.TEST_PROGRAMS;
const root = installed ?? appRoot;
/** Whether the package has been built and installed from this checkout. */
export const PACKAGED = installed !== undefined;

export const TRACEGATE = join(root, "bin/tracegate");
export const TGCTL = join(root, "bin/tgctl");

if (installed !== undefined) runBundlesOf(installed);

import { join } from "node:path";
import { appRoot } from "../../src/base/app-root.ts";

/**
 * Where tests find `bin/`: in the checkout, or in the package that a run of all tests installs (scripts/test.ts), where a
 * gateway starts with a quarter of the CPU.
 */
const root = process.env.TEST_PROGRAMS ?? appRoot;

export const TRACEGATE = join(root, "bin/tracegate");
export const TGCTL = join(root, "bin/tgctl");

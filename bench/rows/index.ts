import type { Row } from "../lib/types.ts";
import { cpu } from "./cpu.ts";

/** In the order of the table. */
export const ROWS: readonly Row[] = [cpu];

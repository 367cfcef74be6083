import { stringify } from "yaml";
import { decompress } from "./decompress.ts";
import type { Reading } from "./detail.ts";

/** The formats in which Node.js shows traces. */
export type Format = "yaml" | "json";

export const READINGS: Readonly<Record<Format, Reading>> = {
  // lineWidth 0: panes wrap by their own width, folding in the YAML would change with it.
  yaml: { write: (value) => stringify(value, { lineWidth: 0 }), decompress },
  json: { write: (value) => JSON.stringify(value, null, 2), decompress },
};

/** The README of each room of src/: that there is one, that what it says about imports is so, and that its files exist. */
import { existsSync } from "node:fs";
import { mayImport, ROOMS } from "./layers.ts";
import { readText, root } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";

/** Rooms whose README is still to be written. */
const LATER: readonly string[] = [
  "cel",
  "trace",
  "upstream",
  "policies",
  "ir",
  "translation",
  "config",
  "proxy",
  "rehearsal",
  "tui",
];
const LINE = /^May import:.*$/m;

function pageOf(room: string): string {
  return `src/${room}/README.md`;
}

/** Each README with its line `May import: …` as `scripts/layers.ts` has it. */
export function roomPages(): (readonly [path: string, text: string])[] {
  return ROOMS.filter((room) => existsSync(root + pageOf(room))).map((room) => {
    const text = readText(pageOf(room));
    if (!LINE.test(text))
      throw new Error(`${pageOf(room)}: the line "May import:" is missing; npm run generate fills it in`);
    const rooms = mayImport(room).map((each) => `\`${each}\``);
    return [pageOf(room), text.replace(LINE, `May import: ${rooms.join(", ") || "no other room"}.`)];
  });
}

/** Files and folders that a README names, relative to its room or, below src/ and scripts/, to the checkout. */
function missingFiles(room: string): string[] {
  const named = [...readText(pageOf(room)).matchAll(/`([\w./-]+(?:\.ts|\/))`/g)].map(([, name = ""]) => name);
  return named
    .filter((name) => !existsSync(`${root}src/${room}/${name}`) && !existsSync(root + name))
    .map((name) => `${pageOf(room)}: ${name} does not exist`);
}

export function checkRooms(): Result {
  const written = ROOMS.filter((room) => existsSync(root + pageOf(room)));
  const missing = ROOMS.filter((room) => !written.includes(room) && !LATER.includes(room));
  return {
    problems: [
      ...missing.map((room) => `${pageOf(room)} is missing: what the room is for, "May import:", where to begin`),
      ...written.flatMap(missingFiles),
    ],
    summary: `${written.length} of ${ROOMS.length} rooms have a README`,
  };
}

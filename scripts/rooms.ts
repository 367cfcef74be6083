/**
 * What introduces the code to its readers: the README of each room of src/, with what it says about imports and files, and the comment at
 * the head of each file of the rooms whose parts need it most.
 */
import { existsSync } from "node:fs";
import { mayImport, ROOMS } from "./layers.ts";
import { projectFiles, readText, root } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";

/** Rooms each of whose files begins with a comment that says what the file is. */
const WITH_HEADS = ["proxy", "cel"];
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

function missingHeads(): string[] {
  const files = new RegExp(`^src/(${WITH_HEADS.join("|")})/(?!.*(testing|fixtures)/).*(?<!\\.test)\\.ts$`);
  return projectFiles()
    .filter((path) => files.test(path) && !readText(path).startsWith("/**"))
    .map((path) => `${path}:1: begin with a comment that says what the file is`);
}

export function checkRooms(): Result {
  const written = ROOMS.filter((room) => existsSync(root + pageOf(room)));
  const missing = ROOMS.filter((room) => !written.includes(room));
  return {
    problems: [
      ...missing.map((room) => `${pageOf(room)} is missing: what the room is for, "May import:", where to begin`),
      ...written.flatMap(missingFiles),
      ...missingHeads(),
    ],
    summary: `${written.length} of ${ROOMS.length} rooms have a README`,
  };
}

import type { Problem } from "../parse/document.ts";

export type Path = readonly PropertyKey[];

/** Tells a problem with the value at `path`; `key` points at a key of it instead. */
export type Report = (path: Path, problem: Problem, key?: string) => void;

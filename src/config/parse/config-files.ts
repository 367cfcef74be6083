/** The files that `-f` names, in their order, and those of folders. */
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../base/errors.ts";
import { fieldsOf } from "../../base/fields.ts";
import { type InputReader, isReadOnce } from "./inputs.ts";

/** A text of a configuration. `name`: its file in messages; paths in the text are relative to the folder of that file. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** The name of a text that has none. */
export const UNNAMED = "configuration";

/** At least one text from a value of JSON; undefined if it is something else. */
export function readTexts(value: unknown): readonly NamedText[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const texts = value.flatMap((each: unknown): NamedText[] => {
    const { name, text, ...others } = fieldsOf(each);
    const isText = typeof name === "string" && typeof text === "string" && Object.keys(others).length === 0;
    return isText ? [{ name, text }] : [];
  });
  return texts.length === value.length ? texts : undefined;
}

/** A file or folder that cannot be used, and why. */
export interface FileProblem {
  readonly file: string;
  readonly message: string;
}

/**
 * Reads files, and of folders the configuration files directly in them, in byte order. Everything that cannot be read is a problem, as is
 * a file that is named twice, also by symbolic links.
 */
export function readConfigFiles(
  paths: readonly string[],
  reader: InputReader,
): { readonly texts: readonly NamedText[]; readonly problems: readonly FileProblem[] } {
  if (paths.length > 1 && paths.some(isReadOnce)) {
    const message = "is read alone; write it to a file, or name no other file";
    return { texts: [], problems: [{ file: "standard input", message }] };
  }
  const texts: NamedText[] = [];
  const problems: FileProblem[] = [];
  const known = new Map<string, string>();
  const attempt = (file: string, read: () => void): void => {
    try {
      read();
    } catch (error) {
      problems.push({ file, message: `cannot read the file: ${messageOf(error)}` });
    }
  };
  const add = (path: string): void => {
    const text = reader.readText(path);
    const name = nameOf(path);
    const real = isReadOnce(path) ? path : realpathSync(path);
    const first = known.get(real);
    if (first === path) problems.push({ file: name, message: "is named twice; keep one -f" });
    else if (first !== undefined)
      problems.push({ file: name, message: `is the same file as ${first}; keep one of the two` });
    known.set(real, path);
    texts.push({ name, text });
  };
  for (const path of paths)
    attempt(path, () => {
      const names = reader.names(path);
      if (names?.length === 0)
        problems.push({
          file: path,
          message: "has no file whose name ends in .yaml, .yml or .json; hidden files and folders in it are not read",
        });
      if (names === undefined) add(path);
      else for (const name of names) attempt(join(path, name), () => add(join(path, name)));
    });
  return { texts, problems };
}

/** The name of a file in messages. */
export function nameOf(path: string): string {
  return path === "-" ? "standard input" : path;
}

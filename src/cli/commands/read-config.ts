import { type NamedText, readConfigFiles } from "../../config/parse/config-files.ts";
import { InputReader } from "../../config/parse/inputs.ts";
import { CliError } from "../runner/errors.ts";

/** The texts of a configuration that a proxy is to judge: files, and those of folders. `-` is standard input. Throws CliError. */
export function readConfig(paths: readonly string[]): readonly NamedText[] {
  const { texts, problems } = readConfigFiles(paths, new InputReader());
  if (problems.length === 0) return texts;
  throw new CliError("failure", problems.map(({ file, message }) => `${file}: ${message}`).join("\n"));
}

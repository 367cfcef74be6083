import { type CustomFunctions, NO_FUNCTIONS, readFunctions } from "../../cel/index.ts";
import type { ConfigDocument } from "./document.ts";
import { valueAt } from "./values.ts";

const PATH = ["config", "customFunctions"];

/**
 * The functions that expressions of the document may call; every mistake in them is reported. Undefined when it is unclear
 * which functions there should be, so that the expressions cannot be checked.
 */
export function customFunctions(document: ConfigDocument): CustomFunctions | undefined {
  const text = valueAt(document.value, PATH);
  // The schema tells of anything that is not text.
  if (typeof text !== "string") return NO_FUNCTIONS;
  const { functions, problems, readable } = readFunctions(text);
  for (const { what, message, position } of problems)
    if (position === undefined || !document.reportInside(PATH, text, position, { message: what }))
      document.report(PATH, { message });
  return readable ? functions : undefined;
}

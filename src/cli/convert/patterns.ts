import { RE2JS } from "re2js";

/** Whether RE2 has everything that a regular expression uses. */
export function isUsablePattern(pattern: string): boolean {
  try {
    RE2JS.compile(pattern);
    return true;
  } catch {
    return false;
  }
}

/** The number of groups of a usable expression. */
export function groupsIn(pattern: string): number {
  return RE2JS.compile(pattern).groupCount();
}

/** Whether a text is an object or a list in JSON. */
export function isJson(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

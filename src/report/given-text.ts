import { CONDITION } from "../rehearsal/condition.ts";

/** Something that an outcome was given, as people read it: `extAuthz=deny`, ``` `jwt.sub == "a"` is true ```. */
export function givenText(name: string, value: string): string {
  return name.startsWith(CONDITION) ? `\`${name.slice(CONDITION.length)}\` is ${value}` : `${name}=${value}`;
}

import type { z } from "zod";

/** `params` of the issue that says that none of some fields is set. */
export interface NoneOf {
  readonly noneOf: readonly string[];
}

/** Refuses an object that sets none or several of `keys`. */
export function exactlyOne(keys: readonly string[]): (context: z.core.ParsePayload<object>) => void {
  return (context) => {
    const set = keys.filter((key) => (context.value as Record<string, unknown>)[key] !== undefined);
    if (set.length === 1) return;
    const none = set.length === 0;
    const message = none ? `one of ${keys.join(", ")} is required` : `only one of ${set.join(", ")} may be set`;
    const params: NoneOf | undefined = none ? { noneOf: keys } : undefined;
    context.issues.push({ code: "custom", input: context.value, message, ...(params !== undefined && { params }) });
  };
}

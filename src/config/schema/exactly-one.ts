import type { z } from "zod";

/** Refuses an object that sets none or several of `keys`. */
export function exactlyOne(keys: readonly string[]): (context: z.core.ParsePayload<object>) => void {
  return (context) => {
    const set = keys.filter((key) => (context.value as Record<string, unknown>)[key] !== undefined);
    if (set.length === 1) return;
    const message =
      set.length === 0 ? `one of ${keys.join(", ")} is required` : `only one of ${set.join(", ")} may be set`;
    context.issues.push({ code: "custom", input: context.value, message });
  };
}

import type { ConditionDraft } from "./model.ts";

export function isTrue(type: string, reason: string, message: string): ConditionDraft {
  return { type, status: "True", reason, message };
}

export function isFalse(type: string, reason: string, message: string): ConditionDraft {
  return { type, status: "False", reason, message };
}

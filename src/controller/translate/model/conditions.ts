/** Conditions, and their messages. */
import type { ConditionDraft } from "./model.ts";

export function isTrue(type: string, reason: string, message: string): ConditionDraft {
  return { type, status: "True", reason, message };
}

export function isFalse(type: string, reason: string, message: string): ConditionDraft {
  return { type, status: "False", reason, message };
}

/** Characters; the API server allows 32768, too many to read. */
const MAX_MESSAGE = 2000;

/** Joins messages, each once. Those that would make the text too long are only counted. */
export function joined(messages: readonly string[]): string {
  const [first = "", ...others] = new Set(messages);
  let text = first.slice(0, MAX_MESSAGE);
  for (const [i, message] of others.entries()) {
    if (text.length + message.length > MAX_MESSAGE) return `${text}; and ${others.length - i} more`;
    text += `; ${message}`;
  }
  return text;
}

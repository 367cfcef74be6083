/** What of a configuration cannot be compiled. */
import { messageOf } from "../../base/errors.ts";
import { type RejectedPart, RejectedParts } from "../../ir/rejected-parts.ts";

/**
 * Listeners that cannot be compiled, with their routes. The others are compiled nevertheless, so that all of them become known in one attempt:
 * Gateways that share a proxy wait neither for each other nor for as many attempts as there are invalid ones.
 */
export class Rejections {
  readonly #parts: RejectedPart[] = [];
  #cause: unknown;

  /** Takes the steps that compile a listener, or its routes; undefined if they fail. */
  *noting<Result>(listener: string, steps: Generator<void, Result>): Generator<void, Result | undefined> {
    try {
      return yield* steps;
    } catch (error) {
      this.#cause ??= error;
      this.#parts.push({ listener, reason: messageOf(error) });
      return undefined;
    }
  }

  /** @throws RejectedParts if there are any */
  check(): void {
    if (this.#parts.length > 0) throw new RejectedParts(this.#parts, { cause: this.#cause });
  }
}

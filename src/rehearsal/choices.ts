import type { CallResponse } from "../upstream/call.ts";
import type { CallHead, CalloutAnswers } from "../upstream/callout.ts";

/** What a rehearsal cannot know, with the values that can be assumed; the first is tried first. */
export const CHOICES = {
  extAuthz: ["allow", "deny"],
  remoteRateLimit: ["under", "over"],
} as const;

export type Choice = keyof typeof CHOICES;
export type Given = Readonly<Partial<Record<Choice, string>>>;

/** Responses of the services, as messages of Envoy's API. */
const UNARY: Readonly<
  Record<string, { readonly choice: Choice; readonly answers: Readonly<Record<string, Uint8Array>> }>
> = {
  "/envoy.service.auth.v3.Authorization/Check": {
    choice: "extAuthz",
    // CheckResponse.status (1): google.rpc.Status with code (1), 7 = PERMISSION_DENIED.
    answers: { allow: Uint8Array.of(0x0a, 0), deny: Uint8Array.of(0x0a, 2, 0x08, 7) },
  },
  "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit": {
    choice: "remoteRateLimit",
    // RateLimitResponse.overall_code (1): 1 = OK, 2 = OVER_LIMIT.
    answers: { under: Uint8Array.of(0x08, 1), over: Uint8Array.of(0x08, 2) },
  },
};

/** Responds in place of the services that policies call, and notes on what the outcome depends. */
export class Choices implements CalloutAnswers {
  #given: Given = {};
  /** What this run was asked, in order, with what it was given. */
  readonly asked = new Map<Choice, string>();

  begin(given: Given): void {
    this.#given = given;
    this.asked.clear();
  }

  /** HTTP services are asked by `extAuthz`; mirrors ignore the response. */
  http(_sent: CallHead): CallResponse {
    return { status: this.#value("extAuthz") === "deny" ? 403 : 200, headers: [], body: new Uint8Array() };
  }

  unary(method: string): Uint8Array | undefined {
    const known = UNARY[method];
    return known?.answers[this.#value(known.choice)];
  }

  #value(choice: Choice): string {
    const value = this.#given[choice] ?? CHOICES[choice][0];
    this.asked.set(choice, value);
    return value;
  }
}

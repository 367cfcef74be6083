/** What became of a request to `/.well-known/acme-challenge/`, by the result in its event. */
export function acmeChallengeText(result: unknown): string {
  return result === "answered"
    ? "answered by the gateway, for an order of its own; no route takes part"
    : "no order of this gateway has this token, so the request goes on to the routes";
}

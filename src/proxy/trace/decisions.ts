/** Decisions of the proxy itself that traces show among those of policies: retries, and endpoints that health checks leave out. */
import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import { applied, Decisions, failed, skipped, unable } from "../../policies/contract/decisions.ts";
import { type BodyUnknown, bodyUnknown } from "../../policies/shared/expressions.ts";

/** What makes the policy want another attempt. */
export type RetryReason =
  | { readonly code: "status"; readonly status: number }
  | { readonly code: "grpcStatus"; readonly grpcStatus: number }
  | { readonly code: "condition" }
  /** The attempt had no response. `detail`: of the error, such as what the system says of a connection. */
  | { readonly code: "failure"; readonly error: ErrorCode; readonly detail: string | undefined };

function reasonText(reason: RetryReason): string {
  switch (reason.code) {
    case "status":
      return `status ${reason.status}`;
    case "grpcStatus":
      return `gRPC status ${reason.grpcStatus}`;
    case "condition":
      return "the condition of the policy";
    case "failure":
      return reason.detail ?? ERRORS[reason.error].message;
  }
}

type RetryDecision =
  | { readonly code: "limit"; readonly max: number }
  | { readonly code: "budget" | "pushback" }
  | { readonly code: "notIdempotent"; readonly method: string }
  | {
      readonly code: "again";
      /** The first retry is 1. */
      readonly attempt: number;
      readonly reason: RetryReason;
      /** Milliseconds. */
      readonly delay: number;
      /** The backend, if the policy chooses another for each attempt. */
      readonly backend?: string;
      /** The only endpoint of the backend. */
      readonly onlyEndpoint?: string;
    };

export const RETRY = new Decisions<RetryDecision>("retry", {
  limit: ({ max }) => unable(`${max} retried requests to the backend are in progress`),
  budget: () => unable("the retry budget of the backend is used up"),
  pushback: () => skipped("the backend does not want another attempt (grpc-retry-pushback-ms)"),
  notIdempotent: ({ method }) =>
    skipped(`the backend may still be working on the request, and ${method} is not idempotent`),
  again: ({ code: _, delay, ...decision }) => {
    const more = { ...decision, reason: reasonText(decision.reason) };
    const to = more.backend === undefined ? "" : ` to the backend ${more.backend}`;
    const only = more.onlyEndpoint === undefined ? "" : `; ${more.onlyEndpoint} is its only endpoint`;
    const wait = `${Math.round(delay)}ms`;
    return applied(`retry ${more.attempt}${to} in ${wait}, because of ${more.reason}${only}`, { ...more, delay: wait });
  },
});

interface Chosen {
  readonly endpoint: string;
  /** The evicted endpoints that were left out, each with why. */
  readonly leftOut: readonly string[];
  /** What the order of endpoints has to do with it. */
  readonly order?: string | undefined;
}

type HealthDecision =
  | ({ readonly code: "leftOut" } & Chosen)
  | ({ readonly code: "noneHealthy"; readonly noneHealthy: string } & Chosen)
  | {
      readonly code: "evicted";
      readonly endpoint: string;
      /** Milliseconds. */
      readonly evictedFor: number;
      readonly consecutiveFailures: number;
    };

export const HEALTH = new Decisions<HealthDecision>("health", {
  leftOut: ({ endpoint, leftOut, order }) =>
    applied(`chose ${endpoint}; left out ${leftOut.join("; ")}${order === undefined ? "" : `; ${order}`}`, {
      endpoint,
      leftOut,
      ...(order !== undefined && { order }),
    }),
  noneHealthy: ({ endpoint, leftOut, noneHealthy }) =>
    failed(`no endpoint is healthy; chose ${endpoint} anyway: ${noneHealthy}`, { endpoint, leftOut, noneHealthy }),
  evicted: ({ endpoint, evictedFor, consecutiveFailures }) => {
    const time = `${Math.round(evictedFor)}ms`;
    const failures = consecutiveFailures === 1 ? "a failure" : `${consecutiveFailures} failures in a row`;
    return failed(`evicts ${endpoint} for ${time} after ${failures}`, {
      endpoint,
      evictedFor: time,
      consecutiveFailures,
    });
  },
});

export const AFFINITY = new Decisions<BodyUnknown>("sessionAffinity", { bodyUnknown });

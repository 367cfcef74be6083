/**
 * The type of what runs, derived from what users write. Schemas return texts that may be in files, and names of services; `Resolved`
 * has text and targets instead. A kind whose schema has such fields needs a `resolve`: without one, the types in `schemas.ts` do not
 * fit. Types only: workers import this file without zod.
 */
import type { z } from "zod";
import type { Milliseconds } from "../../base/durations.ts";
import type { BackendTunnel } from "../../upstream/settings/settings.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { FileName, TextSource } from "./source.ts";

type Scalar = string | number | boolean | bigint | null | undefined;
type External = TextSource | FileName;
/** The ways to name a service, of which exactly one is set. */
type ServiceField = "host" | "service" | "backend";

/** The configuration that runs: read-only, texts in place of files and URLs, a target in place of a service's name. */
export type Resolved<T> = unknown extends T
  ? T
  : T extends External
    ? string
    : T extends Scalar | Uint8Array
      ? T
      : T extends readonly (infer Item)[]
        ? readonly Resolved<Item>[]
        : string extends keyof T
          ? { readonly [Name in keyof T]: Resolved<T[Name]> }
          : "proxy" extends keyof T
            ? BackendTunnel
            : ServiceField extends keyof T
              ? ResolvedFields<Omit<T, ServiceField | "timeout">> & {
                  readonly target: Target;
                  readonly timeout: Milliseconds;
                }
              : ResolvedFields<T>;

/** A text is absent if its file could not be read, which has been reported, or its URL has not been fetched yet. */
type ResolvedFields<T> = {
  readonly [Field in keyof T as NonNullable<T[Field]> extends External ? never : Field]: Resolved<T[Field]>;
} & {
  readonly [Field in keyof T as NonNullable<T[Field]> extends External ? Field : never]?: string | undefined;
};

/** What a schema's output is resolved to. */
export type ConfigOf<Schema extends z.ZodType> = Resolved<z.output<Schema>>;

/** Canary Ingresses: other backends for a part of the requests of a path. */
import type { Json } from "../converted.ts";
import { quoted } from "../paths.ts";
import type { Settings } from "./settings.ts";

/** Conditions beside the path, and the backends of requests that meet them. The first that fits applies. */
export interface Variant {
  readonly suffix: string;
  readonly conditions: Json;
  readonly backends: readonly Json[];
}

/** The variants of a path whose backend is `main`. `canary`: its backend. */
export function variantsOf(main: Json, canary: Json, { annotations }: Settings): readonly Variant[] {
  const variants: Variant[] = [];
  // Routes that match equally well are tried by name, so that headers come before cookies.
  const add = (suffix: string, name: string, value: Json, backend: Json): void => {
    variants.push({ suffix, conditions: { headers: [{ name, value }] }, backends: [backend] });
  };
  const header = annotations.get("canary-by-header");
  const exact = annotations.get("canary-by-header-value");
  const pattern = annotations.get("canary-by-header-pattern");
  if (header !== undefined) {
    if (exact !== undefined) add("canary-1-header", header, { exact }, canary);
    else if (pattern !== undefined) add("canary-1-header", header, { regex: `.*(?:${pattern}).*` }, canary);
    else {
      add("canary-1-header", header, { exact: "always" }, canary);
      add("canary-1-header-never", header, { exact: "never" }, main);
    }
  }
  const cookie = annotations.get("canary-by-cookie");
  if (cookie !== undefined)
    for (const [suffix, value, backend] of [
      ["canary-2-cookie", "always", canary],
      ["canary-2-cookie-never", "never", main],
    ] as const)
      add(suffix, "cookie", { regex: `(?:.*;\\s*)?${quoted(cookie)}=${value}(?:\\s*;.*)?` }, backend);
  const total = Number(annotations.get("canary-weight-total") ?? "100");
  const weight = Math.min(Number(annotations.get("canary-weight") ?? "0"), total);
  const backends =
    weight > 0
      ? [
          { ...main, weight: total - weight },
          { ...canary, weight },
        ]
      : [main];
  return [...variants, { suffix: "", conditions: {}, backends }];
}

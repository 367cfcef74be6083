/** A piece of an expression; `at` is its offset. The text of `escaped` is what stands between the backquotes. */
export type Token =
  | {
      readonly kind: "identifier" | "escaped" | "sign" | "int" | "uint" | "double";
      readonly text: string;
      readonly at: number;
    }
  | { readonly kind: "string"; readonly value: string; readonly text: string; readonly at: number }
  | { readonly kind: "bytes"; readonly value: Uint8Array; readonly text: string; readonly at: number }
  | { readonly kind: "end"; readonly text: ""; readonly at: number };

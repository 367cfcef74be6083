import { useSignal } from "@preact/signals";
import type { VNode } from "preact";

/** A button that copies a text, or shows it where the browser does not allow that. */
export function Copy({ name, text }: { readonly name: string; readonly text: string }): VNode {
  const done = useSignal("");
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => {
        done.value = "copied";
      },
      () => {
        done.value = text;
      },
    );
  };
  return (
    <>
      <button type="button" onClick={copy}>
        {name}
      </button>{" "}
      <span role="status" class="quiet mono">
        {done.value}
      </span>
    </>
  );
}

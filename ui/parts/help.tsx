import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Keys } from "../page.ts";
import { DocLinks, useContents } from "./doc-links.tsx";
import { Problem } from "./problem.tsx";

/** Keys of all pages. */
const EVERYWHERE: Keys = [
  ["?", "this help"],
  ["/", "into the search or filter of the page"],
  ["Tab, Shift+Tab", "to the next, the previous link, button or field"],
];

interface HelpProps {
  /** Name and keys of the present page. */
  readonly name: string;
  readonly keys: Keys;
}

/** A button that shows the keys and the pages of the documentation, as the key `?` does; `/` goes to the search of the page. */
export function Help({ name, keys }: HelpProps): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = useSignal(false);
  const open = (): void => {
    isOpen.value = true;
    dialog.current?.showModal();
  };
  const close = (): void => dialog.current?.close();
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return;
      const search = event.key === "/" ? document.querySelector<HTMLElement>("main input[type=search]") : null;
      if (event.key !== "?" && search === null) return;
      event.preventDefault();
      if (search === null) open();
      else search.focus();
    };
    addEventListener("keydown", press);
    // A link in it leads away from the page that it is about.
    addEventListener("hashchange", close);
    return () => {
      removeEventListener("keydown", press);
      removeEventListener("hashchange", close);
    };
  }, []);
  return (
    <>
      <button type="button" class="help-button" aria-label="Help: keys and documentation" onClick={open}>
        ?
      </button>
      <dialog
        ref={dialog}
        aria-label="Help"
        // The keys of the page behind it have no effect.
        onKeyDown={(event) => event.stopPropagation()}
        onClose={() => {
          isOpen.value = false;
        }}
      >
        {isOpen.value ? <Content name={name} keys={keys} close={close} /> : null}
      </dialog>
    </>
  );
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  );
}

function Content({ name, keys, close }: HelpProps & { readonly close: () => void }): VNode {
  const { answer, problem } = useContents();
  return (
    <>
      <button type="button" class="close" onClick={close}>
        Close
      </button>
      {keys.length === 0 ? null : <KeyList title={`Keys of the page ${name}`} keys={keys} />}
      <KeyList title="Keys of all pages" keys={EVERYWHERE} />
      <h2>Documentation</h2>
      <Problem problem={problem} />
      <DocLinks contents={answer} />
    </>
  );
}

function KeyList({ title, keys }: { readonly title: string; readonly keys: Keys }): VNode {
  return (
    <>
      <h2>{title}</h2>
      <dl class="facts">
        {keys.map(([key, does]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
    </>
  );
}

import { useSignal } from "@preact/signals";
import type { RefObject, VNode } from "preact";
import { useId, useRef } from "preact/hooks";
import type { Catalog, Scope } from "../../src/cel/index.ts";
import { ask } from "../ask.ts";
import { type Completion, completionsAt } from "../completion.ts";

/** Completions at most: more are not looked through. */
const MOST = 40;

interface ExpressionFieldProps {
  /** Which names it offers. */
  readonly scope: Scope;
  /** Its text at first; later the field has its own. */
  readonly value: string;
  /** Its name for people who do not see it. */
  readonly label: string;
  readonly placeholder?: string;
  /** The id of an element that says what is wrong with the expression. */
  readonly problemId?: string | undefined;
  readonly field: RefObject<HTMLInputElement | null>;
  /** Gets the text whenever it has changed. */
  readonly changed?: (text: string) => void;
}

/** What can be written where the caret is; `chosen` -1: none yet. */
interface Offer {
  readonly from: number;
  readonly items: readonly Completion[];
  readonly chosen: number;
}

const NOTHING: Offer = { from: 0, items: [], chosen: -1 };

/**
 * A line for an expression, which offers the names that are known in its scope: arrows choose, Tab and Enter take what is chosen, Tab also the
 * first, Escape closes. Ctrl+Space asks for all.
 */
export function ExpressionField(props: ExpressionFieldProps): VNode {
  const { scope, value, label, placeholder, problemId, field, changed } = props;
  const id = useId();
  const names = useRef<Catalog | undefined>(undefined);
  const isTyping = useRef(false);
  const offer = useSignal(NOTHING);
  const { items, chosen } = offer.value;
  const isOpen = items.length > 0;

  const look = (asked = false): void => {
    const input = field.current;
    if (input === null || names.current === undefined) return;
    const at = input.selectionStart ?? 0;
    const { from, items: found } =
      at === input.selectionEnd ? completionsAt(input.value, at, names.current, asked) : NOTHING;
    offer.value = { from, items: found.slice(0, MOST), chosen: -1 };
  };
  // Asked again each time: another configuration may define other functions. Without an answer, nothing is offered.
  const learn = (): void => {
    ask("/expression/names", { query: { scope } }).then(
      (catalog) => {
        names.current = catalog;
        if (isTyping.current) look();
      },
      () => undefined,
    );
  };
  const take = (item: Completion): void => {
    const input = field.current;
    if (input === null) return;
    const at = input.selectionStart ?? 0;
    const isCalled = input.value[at] === "(";
    const end = item.call === undefined || isCalled ? "" : "()";
    input.setRangeText(item.name + end, offer.value.from, at, "end");
    if (end !== "" && item.call === "(…)") input.setSelectionRange(input.selectionEnd, (input.selectionEnd ?? 0) - 1);
    changed?.(input.value);
    // The next Tab leaves the field.
    offer.value = NOTHING;
  };
  const choose = (next: number): void => {
    offer.value = { ...offer.value, chosen: (next + items.length) % items.length };
    document.getElementById(`${id}-${offer.value.chosen}`)?.scrollIntoView({ block: "nearest" });
  };
  const press = (event: KeyboardEvent): void => {
    const { key, ctrlKey } = event;
    const item = items[key === "Tab" && !event.shiftKey ? Math.max(0, chosen) : chosen];
    if (key === " " && ctrlKey) look(true);
    else if (key === "Escape" && !isOpen) field.current?.blur();
    else if (!isOpen) return;
    else if (key === "ArrowDown") choose(chosen + 1);
    else if (key === "ArrowUp") choose(Math.max(chosen, 0) - 1);
    else if ((key === "Tab" || key === "Enter") && item !== undefined) take(item);
    else if (key === "Escape") offer.value = NOTHING;
    else return;
    event.preventDefault();
  };
  return (
    <div class="expression">
      <input
        ref={field}
        type="text"
        role="combobox"
        aria-label={label}
        aria-autocomplete="list"
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-activedescendant={chosen < 0 ? undefined : `${id}-${chosen}`}
        aria-invalid={problemId === undefined ? undefined : true}
        aria-describedby={problemId}
        placeholder={placeholder}
        defaultValue={value}
        spellcheck={false}
        autocomplete="off"
        onFocus={learn}
        onBlur={() => {
          isTyping.current = false;
          offer.value = NOTHING;
        }}
        onInput={({ currentTarget }) => {
          isTyping.current = true;
          look();
          changed?.(currentTarget.value);
        }}
        onClick={() => look()}
        onKeyDown={press}
      />
      <div id={`${id}-list`} role="listbox" aria-label="Completions" hidden={!isOpen}>
        {items.map((item, index) => (
          <Option key={item.name} id={`${id}-${index}`} item={item} chosen={index === chosen} take={() => take(item)} />
        ))}
      </div>
    </div>
  );
}

interface OptionProps {
  readonly id: string;
  readonly item: Completion;
  readonly chosen: boolean;
  readonly take: () => void;
}

function Option({ id, item: { name, call, about }, chosen, take }: OptionProps): VNode {
  return (
    // The keyboard chooses in the field, which keeps the focus.
    <div
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={chosen}
      onMouseDown={(event) => {
        event.preventDefault();
        take();
      }}
    >
      <span>
        {name}
        {call}
      </span>{" "}
      <span class="quiet">{about}</span>
    </div>
  );
}

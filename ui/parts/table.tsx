import type { ComponentChildren, VNode } from "preact";

/** A column: what stands above it. `number`: of numbers, which are aligned to the right. */
type Heading = string | { readonly number: string };

interface TableProps {
  /** What it lists, for screen readers. */
  readonly label: string;
  readonly headings: readonly Heading[];
  readonly class?: string;
  /** The rows. */
  readonly children: ComponentChildren;
}

/** A table that scrolls sideways within the page, also by keyboard. */
export function Table({ label, headings, class: name = "", children }: TableProps): VNode {
  return (
    <section class="scroll" tabIndex={0} aria-label={label}>
      <table class={`mono ${name}`}>
        <thead>
          <tr>
            {headings.map((heading) =>
              typeof heading === "string" ? (
                <th key={heading} scope="col">
                  {heading}
                </th>
              ) : (
                <th key={heading.number} scope="col" class="number">
                  {heading.number}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

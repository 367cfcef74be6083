/** The fields for log levels on a page of the web view. */
import type { Page } from "./chromium.ts";

/** Chooses the level of a module, as a person does. */
export async function choose(page: Page, module: string, level: string): Promise<void> {
  await page.evaluate(`(() => {
    const select = ${fieldOf(module)};
    select.value = ${JSON.stringify(level)};
    select.dispatchEvent(new Event("change", { bubbles: true }));
  })()`);
}

/** An expression for the level of a module that the page shows. */
export function levelOf(module: string): string {
  return `${fieldOf(module)}.value`;
}

function fieldOf(module: string): string {
  return `[...document.querySelectorAll(".log-levels label")].find(({ firstChild }) => firstChild.textContent === ${JSON.stringify(module)}).querySelector("select")`;
}

import type { VNode } from "preact";
import { counted } from "../src/base/counted.ts";
import { replicas, waiting } from "./ask.ts";
import type { Page } from "./page.ts";
import { PAGES } from "./pages/pages.ts";
import { Help } from "./parts/help.tsx";
import { replicaNotes } from "./parts/replica-notes.ts";
import { place } from "./place.ts";

/** The navigation, and the page at the present place. */
export function Frame(): VNode {
  const at = place.value;
  const page = PAGES.find(({ path }) =>
    path.endsWith("/") && path !== "/" ? at.path.startsWith(path) : at.path === path,
  );
  return (
    <div class="frame">
      <header>
        <strong>tracegate</strong>
        <nav aria-label="Pages">
          {PAGES.flatMap(({ path, name }) =>
            name === undefined ? (
              []
            ) : (
              <a
                key={path}
                href={`#${path}`}
                aria-current={page?.path === path ? "page" : page?.within === path ? "true" : undefined}
              >
                {name}
              </a>
            ),
          )}
        </nav>
        {replicas.value.length === 0 ? null : <span class="quiet">{counted(replicas.value.length, "replica")}</span>}
        <span role="status" class="quiet">
          {waiting.value === 0 ? "" : "waiting for the gateway…"}
        </span>
        <Help name={page?.name ?? ""} keys={page?.keys ?? []} />
      </header>
      {replicaNotes(replicas.value).map((note) => (
        <p key={note} class="problem" role="status">
          {note}
        </p>
      ))}
      <main class={page?.full === true ? "full" : ""}>
        {page === undefined ? <p class="problem">There is no page {at.path}.</p> : shown(page)}
      </main>
    </div>
  );
}

function shown({ path, show: Shown }: Page): VNode {
  const rest = decoded(place.value.path.slice(path.length));
  return <Shown key={path.endsWith("/") ? rest : path} place={place.value} rest={rest} />;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

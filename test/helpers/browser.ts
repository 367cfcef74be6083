interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly path: string;
}

/** The result of a request: a page, or a redirect. */
export interface Page {
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

const MAX_REDIRECTS = 20;

/** The parts of a browser that a login needs: cookies (for all ports of a host), redirects and forms. */
export class Browser {
  readonly #cookies = new Map<string, Cookie>();

  /** Cookies that a request to `url` carries, by name. */
  cookies(url: URL | string): Map<string, string> {
    const { hostname, pathname } = new URL(url);
    const own = [...this.#cookies].filter(([key, { path }]) => {
      return key.startsWith(`${hostname} `) && (path === "/" || pathname === path || pathname.startsWith(`${path}/`));
    });
    return new Map(own.map(([, { name, value }]) => [name, value]));
  }

  /** As if a server of this host had set it. */
  setCookie(url: URL | string, name: string, value: string): void {
    this.#cookies.set(`${new URL(url).hostname} / ${name}`, { name, value, path: "/" });
  }

  /** One request; redirects are not followed. */
  async request(url: URL | string, init: RequestInit = {}): Promise<Page> {
    const cookie = Array.from(this.cookies(url), (pair) => pair.join("=")).join("; ");
    const headers = new Headers(init.headers);
    if (cookie !== "") headers.set("cookie", cookie);
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const text of response.headers.getSetCookie()) this.#store(new URL(url), text);
    return { url: new URL(url), status: response.status, headers: response.headers, body: await response.text() };
  }

  /** Opens a URL and follows its redirects. */
  async open(url: URL | string, init: RequestInit = {}): Promise<Page> {
    return this.follow(await this.request(url, init));
  }

  /** Follows redirects until a page is shown, or until `stop` is true for the next URL. */
  async follow(page: Page, stop: (next: URL) => boolean = () => false): Promise<Page> {
    let at = page;
    for (let i = 0; i < MAX_REDIRECTS; i++) {
      const location = at.headers.get("location");
      if (location === null || at.status < 300 || at.status > 399) return at;
      const next = new URL(location, at.url);
      if (stop(next)) return at;
      at = await this.request(next);
    }
    throw new Error(`more than ${MAX_REDIRECTS} redirects; the last to ${at.url}`);
  }

  /** Fills in and sends the form of a page. Redirects are not followed. */
  async submit(page: Page, fields: Readonly<Record<string, string>>): Promise<Page> {
    const action = /<form[^>]* action="([^"]+)"/.exec(page.body)?.[1];
    if (action === undefined) throw new Error(`no form at ${page.url}: ${page.status} ${page.body}`);
    const hidden = [...page.body.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)];
    const body = new URLSearchParams(fields);
    for (const [, name = "", value = ""] of hidden) body.append(name, value);
    return this.request(new URL(action, page.url), { method: "POST", body });
  }

  #store(url: URL, text: string): void {
    const [pair = "", ...attributes] = text.split(";").map((part) => part.trim());
    const attribute = (name: string) =>
      attributes.find((each) => each.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1);
    const [, name = "", value = ""] = /^([^=]*)=(.*)$/.exec(pair) ?? [];
    const path = attribute("path") ?? "/";
    const key = `${url.hostname} ${path} ${name}`;
    const expires = attribute("expires");
    const gone = attribute("max-age") === "0" || (expires !== undefined && Date.parse(expires) <= Date.now());
    if (gone) this.#cookies.delete(key);
    else this.#cookies.set(key, { name, value, path });
  }
}

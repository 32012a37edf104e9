// <posthorn-portal link="/webhooks/portal-link"> shows a customer's webhook dashboard within your page. The attribute is a route of
// your backend: it responds to POST with the JSON of POST /portal-links, or any JSON with its "url". For another way to get a
// link, such as with a header against request forgery, set the property getLink to a function that returns the URL or a promise of it.
//
// The element gets a new link before the session ends, and again after the session was ended. It sends the events "ready",
// "signed-out" and "error".
"use strict";

(() => {
  if (customElements.get("posthorn-portal")) return;

  const early = 300; // seconds before its end that a session is renewed
  const longest = 2 ** 31 - 1; // of a timer
  const style = new CSSStyleSheet();
  style.replaceSync(":host { display: block; block-size: 720px; } :host([hidden]) { display: none; } iframe { display: block; inline-size: 100%; block-size: 100%; border: 0; } iframe[hidden] { display: none; } p { font: 15px/1.5 system-ui, sans-serif; }");

  customElements.define("posthorn-portal", class extends HTMLElement {
    static observedAttributes = ["link"];

    #frame = null;
    #spare = null; // a hidden frame that renews the session without touching what the customer is doing
    #said = null; // what is wrong
    #origin = "";
    #run = 0; // the last request for a link; the response to an older one is dropped
    #lost = 0; // ended sessions since the dashboard was last seen
    #timer = 0;

    #get = null; // what the page set as getLink

    get getLink() { return this.#get ?? this.#post; }
    set getLink(get) {
      this.#get = get;
      if (this.isConnected) this.#open();
    }

    #post = async () => {
      const link = this.getAttribute("link");
      const response = await fetch(link, { method: "POST", credentials: "same-origin", headers: { Accept: "application/json" } });
      if (!response.ok) throw new Error(`${link} responded with ${response.status}`);
      return (await response.json()).url;
    };

    connectedCallback() {
      if (Object.hasOwn(this, "getLink")) { // set before this file was loaded
        this.#get = this.getLink;
        delete this.getLink;
      }
      if (!this.#frame) {
        const root = this.attachShadow({ mode: "open" });
        root.adoptedStyleSheets = [style];
        this.#frame = this.#newFrame();
        this.#said = document.createElement("p");
        this.#said.setAttribute("role", "alert");
        root.append(this.#said, this.#frame);
      }
      addEventListener("message", this.#hear);
      this.#lost = 0;
      this.#open();
    }

    disconnectedCallback() {
      removeEventListener("message", this.#hear);
      clearTimeout(this.#timer);
      this.#run++;
      this.#drop();
    }

    attributeChangedCallback(name, was, is) {
      if (this.isConnected && was !== is) this.#open();
    }

    #newFrame() {
      const frame = document.createElement("iframe");
      frame.allow = "clipboard-write";
      frame.title = this.title || "Webhooks";
      return frame;
    }

    #drop() {
      this.#spare?.remove();
      this.#spare = null;
    }

    // Gets a link for the visible frame. path is the page that the customer was on.
    async #open(path) {
      if (!this.#frame || !this.#get && !this.hasAttribute("link")) return;
      const run = ++this.#run;
      this.#said.textContent = "";
      try {
        const url = new URL(await this.getLink(), location.href);
        if (run !== this.#run) return;
        if (path?.startsWith("/t/")) url.searchParams.set("next", path);
        this.#origin = url.origin;
        this.#frame.hidden = false;
        this.#frame.src = url.href;
      } catch (error) {
        if (run === this.#run) this.#fail(error, "This dashboard can't be loaded right now. Reload the page to try again.");
      }
    }

    async #renew() {
      const run = this.#run;
      try {
        const url = new URL(await this.getLink(), location.href);
        if (run !== this.#run || url.origin !== this.#origin) return;
        this.#drop();
        this.#spare = this.#newFrame();
        this.#spare.hidden = true;
        this.#spare.src = url.href;
        this.shadowRoot.append(this.#spare);
      } catch {
        // the session ends, and then the dashboard is opened again
      }
    }

    #fail(error, text) {
      this.#said.textContent = text;
      this.#frame.hidden = true;
      this.dispatchEvent(new CustomEvent("error", { detail: error }));
    }

    #hear = ({ origin, source, data }) => {
      const spare = this.#spare?.contentWindow === source;
      if (origin !== this.#origin || !spare && source !== this.#frame.contentWindow) return;
      switch (data?.type) {
        case "posthorn:ready":
          this.#lost = 0;
          clearTimeout(this.#timer);
          if (data.seconds > 0) this.#timer = setTimeout(() => this.#renew(), Math.min(Math.max(data.seconds - early, 1) * 1000, longest));
          if (spare) this.#drop();
          else this.dispatchEvent(new CustomEvent("ready"));
          return;
        case "posthorn:signed-out":
          if (spare) return this.#drop();
          this.dispatchEvent(new CustomEvent("signed-out"));
          if (++this.#lost < 3) this.#open(data.path);
          else this.#fail(new Error("the session's cookie is not kept"), "This dashboard can't be shown here, because your browser blocks its cookies.");
      }
    };
  });
})();

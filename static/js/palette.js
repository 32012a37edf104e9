// The command palette (Ctrl or Cmd+K), the list of shortcuts (?), and the shortcuts of single keys. Without this script the opener is
// a link to the search page.
"use strict";

(() => {
  const dialog = document.getElementById("palette");
  const help = document.getElementById("shortcuts");
  if (!dialog?.showModal || !help) return;
  const input = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  const mac = /Mac|iPhone|iPad/.test(navigator.platform);
  for (const key of document.querySelectorAll("[data-palette-key]")) if (mac) key.textContent = "⌘ K";

  // Entries are loaded once, when the palette is first opened. The last entry hands the text to the search page.
  let loaded = null;
  const option = (label, href, note = "", icon = null) => {
    const a = document.createElement("a");
    a.className = "palette-item";
    a.setAttribute("role", "option");
    a.setAttribute("aria-selected", "false");
    a.tabIndex = -1;
    a.href = href;
    const name = document.createElement("span");
    name.className = "palette-name";
    const text = document.createElement("span");
    text.textContent = label;
    name.append(...(icon ? [icon.cloneNode(true)] : []), text);
    a.append(name);
    if (note) {
      const small = document.createElement("small");
      small.textContent = note;
      a.append(small);
    }
    a.dataset.words = `${label} ${note}`.toLowerCase();
    return a;
  };
  const group = (label, options) => {
    const g = document.createElement("div");
    g.setAttribute("role", "group");
    g.setAttribute("aria-label", label);
    const head = document.createElement("p");
    head.className = "palette-label";
    head.setAttribute("aria-hidden", "true");
    head.textContent = label;
    g.append(head, ...options);
    return g;
  };

  // What can be done to the object of this page is what its head offers, so the palette has the same verbs, for the same people. An
  // option presses the button or link that it stands for.
  const presses = new WeakMap();
  const text = (element) => (element?.textContent ?? "").trim().replace(/\s+/g, " ");
  const verb = (label, words, element) => {
    const a = option(label, "#", "", element.querySelector("svg"));
    a.dataset.words += ` ${words}`;
    presses.set(a, element);
    return a;
  };
  const verbs = () => {
    const head = document.querySelector("#main .page-head");
    const title = text(head?.querySelector("h1"));
    const found = [];
    for (const element of head?.querySelectorAll(".page-head-actions :is(button, a):not([disabled])") ?? []) {
      let label = text(element);
      const menu = element.closest("details.menu")?.querySelector("summary:not(.btn-icon)");
      if (menu) label = `${text(menu)} ${label[0].toLowerCase()}${label.slice(1)}`;
      else if (!label.includes(" ")) label = `${label} ${title}`;
      found.push(verb(label, title.toLowerCase(), element));
    }
    if (!found.length) return null;
    const g = group(title, found);
    g.dataset.verbs = "";
    return g;
  };
  const own = () => {
    const found = new Map();
    for (const element of document.querySelectorAll("[data-verb]")) {
      if (!found.has(element.dataset.verb)) found.set(element.dataset.verb, verb(element.dataset.verb, element.dataset.words, element));
    }
    return found.size ? group("This browser", [...found.values()]) : null;
  };

  // Where the reader went from here lately. The list is deleted with the session.
  const kept = "posthorn.recent";
  const recent = () => {
    try { return JSON.parse(localStorage.getItem(kept) ?? "[]").filter((r) => r.from === dialog.dataset.from); } catch { return []; }
  };
  const remember = (a) => {
    const to = { from: dialog.dataset.from, href: a.getAttribute("href"), label: text(a.querySelector("span")) };
    try { localStorage.setItem(kept, JSON.stringify([to, ...recent().filter((r) => r.href !== to.href)].slice(0, 5))); } catch { /* not kept */ }
  };
  document.addEventListener("submit", (event) => {
    if (event.submitter?.dataset.verb === "Sign out") try { localStorage.removeItem(kept); } catch { /* nothing is kept */ }
  });

  const load = async () => {
    const endpoint = /\/endpoints\/(ep_\w+)/.exec(location.pathname)?.[1] ?? "";
    const answer = await fetch(`${dialog.dataset.from}?endpoint=${endpoint}`, { headers: { "HX-Request": "true" } });
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    const groups = [...new DOMParser().parseFromString(await answer.text(), "text/html").body.children];
    const known = new Map(groups.flatMap((g) => [...g.querySelectorAll("a")]).map((a) => [a.getAttribute("href"), a.querySelector("svg")]));
    const last = recent().filter((r) => r.href !== location.pathname).map((r) => option(r.label, r.href, "", known.get(r.href) ?? null));
    const lately = last.length ? group("Recent", last) : null;
    if (lately) lately.dataset.recent = "";
    list.replaceChildren(...[lately, ...groups, own()].filter(Boolean));
    list.querySelectorAll("[role=option]").forEach((o, i) => { o.id = `palette-${i}`; });
  };

  const shown = () => [...list.querySelectorAll("[role=option]")].filter((o) => !o.hidden && !o.closest("[hidden]"));
  const choose = (chosen) => {
    for (const o of list.querySelectorAll("[aria-selected=true]")) o.setAttribute("aria-selected", "false");
    if (!chosen) { input.removeAttribute("aria-activedescendant"); return; }
    chosen.setAttribute("aria-selected", "true");
    input.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  };

  // Sections of the documentation come last, a moment after the rest. What is selected stays so.
  const docs = group("Documentation", []);
  let asked = 0, waiting = 0;
  const readDocs = (query) => {
    clearTimeout(waiting);
    docs.remove();
    const mine = ++asked;
    if (!dialog.dataset.docs || query.length < 3) return;
    waiting = setTimeout(async () => {
      try {
        const answer = await fetch(`${dialog.dataset.docs}?q=${encodeURIComponent(query)}`);
        const hits = answer.ok ? await answer.json() : [];
        if (mine !== asked || !hits.length) return;
        docs.replaceChildren(docs.firstChild, ...hits.slice(0, 5).map((h, i) => {
          const a = option(h.title, h.path, h.page === h.title ? "" : h.page);
          a.id = `palette-docs-${i}`;
          return a;
        }));
        list.append(docs);
      } catch { /* the search page has a link to it */ }
    }, 150);
  };

  const search = option("", "#");
  const most = 8; // of each group, while nothing narrows it down
  const narrow = () => {
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    docs.remove();
    search.remove();
    for (const g of list.querySelectorAll("[role=group]")) {
      let count = 0;
      for (const o of g.querySelectorAll("[role=option]")) {
        const fits = words.every((w) => o.dataset.words.includes(w)) && !(words.length && "recent" in g.dataset);
        o.hidden = !fits || count >= (words.length ? 20 : most);
        if (!o.hidden) count += 1;
      }
      g.hidden = count === 0;
    }
    const query = input.value.trim();
    if (query) {
      search.id = "palette-search";
      search.setAttribute("aria-selected", "false");
      search.href = `${dialog.dataset.search}?q=${encodeURIComponent(query)}`;
      search.querySelector("span span").textContent = `Search for “${query}”`;
      list.append(search);
    }
    readDocs(query);
    // An id or a value is looked up at once; a word that names a page leads there.
    const all = shown();
    choose(/_|:|\d{3}/.test(query) && query ? search : all[0]);
  };

  // The page can have changed since the palette was last open: its verbs are read again.
  const act = () => {
    list.querySelector("[data-verbs]")?.remove();
    const now = verbs();
    if (now) {
      now.querySelectorAll("[role=option]").forEach((o, i) => { o.id = `palette-verb-${i}`; });
      list.prepend(now);
    }
    narrow();
  };

  const open = () => {
    if (dialog.open) return;
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
    document.getElementById("side")?.hidePopover?.();
    dialog.showModal();
    input.value = "";
    input.focus();
    loaded ??= load().catch(() => { loaded = null; });
    loaded.then(act);
    act();
  };

  document.addEventListener("click", (event) => {
    const opener = event.target instanceof Element ? event.target.closest("[data-palette-open]") : null;
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  input.addEventListener("input", narrow);
  let entered = false; // Enter is down: what it opens must not get the rest of the same key
  input.addEventListener("keyup", (event) => {
    if (event.key !== "Enter" || !entered) return;
    entered = false;
    list.querySelector("[aria-selected=true]")?.click();
  });
  input.addEventListener("keydown", (event) => {
    const all = shown();
    const at = all.findIndex((o) => o.getAttribute("aria-selected") === "true");
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8 }[event.key];
    if (to !== undefined && all.length) {
      event.preventDefault();
      const single = event.key.startsWith("Arrow");
      choose(all[single ? (to + all.length) % all.length : Math.min(Math.max(to, 0), all.length - 1)]);
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      entered = true;
    }
  });
  list.addEventListener("click", (event) => {
    const chosen = event.target.closest("[role=option]");
    if (!chosen) return;
    const pressed = presses.get(chosen);
    if (!pressed) {
      if (chosen !== search) remember(chosen);
      return;
    }
    event.preventDefault();
    dialog.close();
    pressed.click();
  });
  list.addEventListener("pointermove", (event) => {
    const under = event.target.closest("[role=option]");
    if (under && under.getAttribute("aria-selected") !== "true") choose(under);
  });
  // A browser can keep the page as it was left: with the palette open.
  window.addEventListener("pageshow", (event) => { if (event.persisted && dialog.open) dialog.close(); });

  // Shortcuts of single keys can be switched off, since programs that type what somebody says would press them.
  const box = help.querySelector("[data-single-keys]");
  const off = "posthorn.no-single-keys";
  const allowed = () => { try { return localStorage.getItem(off) === null; } catch { return true; } };
  box.checked = allowed();
  box.addEventListener("change", () => {
    try { if (box.checked) localStorage.removeItem(off); else localStorage.setItem(off, "1"); } catch { /* kept for this page only */ }
  });
  const root = help.querySelector("[data-shortcuts]")?.dataset.shortcuts ?? "";
  const pages = { o: "/", e: "/endpoints", d: "/deliveries", v: "/events" };
  let pressedG = 0;
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      event.preventDefault();
      if (dialog.open) dialog.close(); else open();
      return;
    }
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable], dialog[open]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !allowed()) return;
    if (event.key === "?") { event.preventDefault(); help.showModal(); }
    if (Date.now() - pressedG < 1000 && root.startsWith("/t/ten_") && pages[event.key]) { event.preventDefault(); location.assign(root + pages[event.key]); }
    pressedG = event.key === "g" ? Date.now() : 0;
  });
})();

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
  const search = document.createElement("a");
  search.className = "palette-item";
  search.setAttribute("role", "option");
  search.tabIndex = -1;
  const load = async () => {
    const answer = await fetch(dialog.dataset.from, { headers: { "HX-Request": "true" } });
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    list.replaceChildren(...new DOMParser().parseFromString(await answer.text(), "text/html").body.childNodes);
    list.querySelectorAll("[role=option]").forEach((option, i) => { option.id = `palette-${i}`; });
  };

  const shown = () => [...list.querySelectorAll("[role=option]")].filter((o) => !o.hidden);
  const choose = (option) => {
    for (const o of list.querySelectorAll("[aria-selected=true]")) o.setAttribute("aria-selected", "false");
    if (!option) { input.removeAttribute("aria-activedescendant"); return; }
    option.setAttribute("aria-selected", "true");
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };
  const most = 8; // of each group, while nothing narrows it down
  const narrow = () => {
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    for (const group of list.querySelectorAll("[role=group]")) {
      let count = 0;
      for (const option of group.querySelectorAll("[role=option]")) {
        const fits = words.every((w) => option.dataset.words.includes(w));
        option.hidden = !fits || count >= (words.length ? 20 : most);
        if (!option.hidden) count += 1;
      }
      group.hidden = count === 0;
    }
    const text = input.value.trim();
    search.remove();
    if (text) {
      search.id = "palette-search";
      search.setAttribute("aria-selected", "false");
      search.href = `${dialog.dataset.search}?q=${encodeURIComponent(text)}`;
      search.textContent = `Search for “${text}”`;
      list.append(search);
    }
    // An id or a value is looked up at once; a word that names a page leads there.
    const all = shown();
    choose(/_|:|\d{3}/.test(text) && text ? search : all[0]);
  };

  const open = () => {
    if (dialog.open) return;
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
    document.getElementById("side")?.hidePopover?.();
    dialog.showModal();
    input.value = "";
    input.focus();
    loaded ??= load().catch(() => { loaded = null; });
    loaded.then(narrow);
    narrow();
  };

  document.addEventListener("click", (event) => {
    const opener = event.target instanceof Element ? event.target.closest("[data-palette-open]") : null;
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  input.addEventListener("input", narrow);
  input.addEventListener("keydown", (event) => {
    const all = shown();
    const at = all.findIndex((o) => o.getAttribute("aria-selected") === "true");
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8 }[event.key];
    if (to !== undefined && all.length) {
      event.preventDefault();
      const single = event.key.startsWith("Arrow");
      choose(all[single ? (to + all.length) % all.length : Math.min(Math.max(to, 0), all.length - 1)]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const option = all[at];
      if (option) location.assign(option.href);
    }
  });
  list.addEventListener("pointermove", (event) => {
    const option = event.target.closest("[role=option]");
    if (option && option.getAttribute("aria-selected") !== "true") choose(option);
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

// What the pages do by themselves, all of it beside what works without a script. Nothing is written into the pages'
// markup: attributes named data-... say what an element does, and this file listens at the document.
"use strict";

(() => {
  const on = (type, handler, options) => document.addEventListener(type, handler, options);
  const closest = (event, selector) => event.target instanceof Element ? event.target.closest(selector) : null;

  // Says something to those who don't see the change.
  const say = (text) => {
    const region = document.getElementById("announcer");
    if (!region) return;
    region.textContent = "";
    requestAnimationFrame(() => { region.textContent = text; });
  };

  // Copy: data-copy holds the text, or data-copy-from the id of what holds it.
  const copied = new WeakMap();
  on("click", async (event) => {
    const button = closest(event, "[data-copy], [data-copy-from]");
    if (!button) return;
    event.preventDefault();
    const source = button.dataset.copyFrom ? document.getElementById(button.dataset.copyFrom) : null;
    const text = source ? (source.value ?? source.textContent) : button.dataset.copy;
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      done = false;
      if (source) getSelection().selectAllChildren(source);
    }
    say(done ? "Copied" : "Could not copy. The text is selected.");
    if (!done) return;
    clearTimeout(copied.get(button));
    button.classList.add("is-done");
    copied.set(button, setTimeout(() => button.classList.remove("is-done"), 1600));
  });

  // The first focus of a dialog is its first field or the way out, never the cross.
  const show = (dialog) => {
    dialog.showModal();
    if (dialog.querySelector("[autofocus]")) return;
    (dialog.querySelector(".dialog-form :is(input:not([type=hidden], [type=radio], [type=checkbox]), select, textarea)") ?? dialog.querySelector(":is(.dialog-foot, .dialog-list) .btn"))?.focus();
  };

  // Dialogs: newer browsers open them by command, older ones as popovers; here they become modal in all.
  on("click", (event) => {
    const opener = closest(event, "[commandfor][command='show-modal']");
    if (opener) {
      const dialog = document.getElementById(opener.getAttribute("commandfor"));
      if (dialog && !dialog.open && dialog.showModal) {
        event.preventDefault();
        show(dialog);
      }
      return;
    }
    const closer = closest(event, "[data-close]");
    if (closer) {
      const dialog = closer.closest("dialog");
      if (dialog?.open) { event.preventDefault(); dialog.close(); }
      return;
    }
    if (event.target instanceof HTMLDialogElement && event.target.open && event.target.matches(":modal")) event.target.close();
  });

  // A field that the browser rejects is shown, also in a group that is folded.
  document.addEventListener("invalid", (event) => {
    const fold = closest(event, "details.fold:not([open])");
    if (fold) fold.open = true;
  }, true);

  // Menus are details elements: they close when the pointer or the focus goes elsewhere, and on Escape.
  const closeMenus = (except) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!except || !menu.contains(except)) menu.open = false;
    }
  };
  on("click", (event) => closeMenus(event.target));
  on("focusin", (event) => closeMenus(event.target));
  on("keydown", (event) => {
    if (event.key === "Escape") {
      const menu = closest(event, "details.menu[open]");
      if (menu) { menu.open = false; menu.querySelector("summary")?.focus(); }
    }
    let single = true; // palette.js has the box that switches them off
    try { single = localStorage.getItem("posthorn.no-single-keys") === null; } catch { /* as if it were not set */ }
    if (single && event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey
      && !closest(event, "input, textarea, select, [contenteditable]")) {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
  });

  // The theme: the form works by itself; here the page changes at once and the cookie is set behind it.
  on("submit", (event) => {
    const form = closest(event, "form[data-theme-form]");
    if (!form) return;
    event.preventDefault();
    const data = new FormData(form, event.submitter);
    const theme = data.get("theme");
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    for (const button of form.querySelectorAll("button[name=theme]")) {
      button.setAttribute("aria-pressed", String(button.value === theme));
    }
    fetch(form.action, { method: "POST", body: new URLSearchParams(data), headers: { "HX-Request": "true" } }).catch(() => {});
  });

  // Times: the server writes both; what is relative would grow old on an open page.
  const units = [[60, "s", 1], [3600, "min", 60], [86400, "h", 3600], [60 * 86400, "d", 86400], [730 * 86400, "months", 30 * 86400], [Infinity, "years", 365 * 86400]];
  // The server writes UTC. Here moments are written in the reader's time zone, and UTC is below the pointer.
  const format = (options) => new Intl.DateTimeFormat("en-GB", { hourCycle: "h23", ...options });
  const day = { day: "numeric", month: "short" }, clock = { hour: "2-digit", minute: "2-digit" };
  const formats = { axis: format(clock), row: format({ ...day, ...clock }), exact: format({ ...day, ...clock, year: "numeric", second: "2-digit", timeZoneName: "short" }) };
  const zone = format({ ...clock, timeZoneName: "short" }).formatToParts(new Date()).find((p) => p.type === "timeZoneName")?.value ?? "UTC";
  const utc = format({ ...day, ...clock, year: "numeric", second: "2-digit", timeZone: "UTC" });
  const stamp = (at) => `${utc.format(at)} UTC`;
  const localize = (el) => {
    const at = new Date(el.dataset.at ?? el.dateTime);
    if (Number.isNaN(at.getTime())) return;
    el.dataset.local = "";
    if (el.dataset.clock) el.textContent = formats[el.dataset.clock].format(at);
    else if ("exact" in el.dataset) { el.textContent = formats.exact.format(at); el.title = stamp(at); }
    else el.title = zone === "UTC" ? stamp(at) : `${formats.exact.format(at)} (${stamp(at)})`;
  };

  // Fields of date and time hold UTC in the address and in what is sent, and the reader's time on the page.
  const pad = (n) => String(n).padStart(2, "0");
  const localFields = (root) => {
    for (const field of root.querySelectorAll("input[type=datetime-local][data-utc]:not([data-local])")) {
      field.dataset.local = "";
      for (const node of field.labels?.[0]?.childNodes ?? []) {
        if (node.nodeType === Node.TEXT_NODE) node.nodeValue = node.nodeValue.replace("(UTC)", `(${zone})`);
      }
      const at = new Date(`${field.defaultValue}Z`);
      if (!field.defaultValue || Number.isNaN(at.getTime())) continue;
      field.defaultValue = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
    }
  };
  on("formdata", (event) => {
    for (const field of event.target.querySelectorAll("input[data-utc][data-local]")) {
      const at = new Date(field.value);
      if (field.name && field.value && event.formData.has(field.name) && !Number.isNaN(at.getTime())) event.formData.set(field.name, at.toISOString().slice(0, 19));
    }
  });

  const freshen = () => {
    const now = Date.now();
    for (const el of document.querySelectorAll("time[data-relative]")) {
      const seconds = (Date.parse(el.dateTime) - now) / 1000;
      if (Number.isNaN(seconds)) continue;
      const far = Math.abs(seconds);
      // What is ahead is rounded to the nearest, as the server does.
      let up = 0;
      if (seconds > 0) up = far >= 86400 - 1800 ? 43200 : far >= 3600 - 30 ? 1800 : far >= 60 ? 30 : 0;
      const [, unit, size] = units.find(([limit]) => far + up < limit);
      const span = `${Math.floor((far + up) / size)} ${unit}`;
      const text = far < 5 ? "just now" : seconds < 0 ? `${span} ago` : `in ${span}`;
      if (el.textContent !== text) el.textContent = text;
    }
    for (const el of document.querySelectorAll("time:not([data-local]), [data-clock]:not([data-local])")) localize(el);
    for (const el of document.querySelectorAll("[data-zone]")) if (el.textContent !== zone) el.textContent = zone;
  };
  setInterval(() => { if (!document.hidden) freshen(); }, 10000);
  on("visibilitychange", () => { if (!document.hidden) freshen(); });

  // Bulk selection: a list with data-bulk; its boxes are named "id", one with data-all takes them all.
  const chosen = new Map(); // list id -> set of values, so that a refreshed list keeps its choice
  const tally = (list) => {
    const boxes = [...list.querySelectorAll("input[type=checkbox][name=id]")];
    const marked = boxes.filter((b) => b.checked);
    chosen.set(list.id, new Set(marked.map((b) => b.value)));
    const all = list.querySelector("input[data-all]");
    if (all) {
      all.checked = boxes.length > 0 && marked.length === boxes.length;
      all.indeterminate = marked.length > 0 && marked.length < boxes.length;
    }
    for (const el of list.querySelectorAll("[data-count]")) el.textContent = String(marked.length);
    list.classList.toggle("has-selection", marked.length > 0);
  };
  on("change", (event) => {
    const list = closest(event, "[data-bulk]");
    if (!list) return;
    if (event.target.matches("input[data-all]")) {
      for (const box of list.querySelectorAll("input[type=checkbox][name=id]")) box.checked = event.target.checked;
    }
    tally(list);
  });

  // Filters: a change of a choice sends the form. A text waits for Enter or the button, which shows while there is something to send.
  const filterForms = () => document.querySelectorAll("form[data-autosubmit]");
  const typed = (form) => [...form.elements].some((f) => f.name && f.matches("input, textarea") && !f.matches("[type=hidden], [type=checkbox], [type=radio]") && f.value !== f.defaultValue);
  on("input", (event) => { const form = closest(event, "form[data-autosubmit]"); if (form) form.classList.toggle("is-dirty", typed(form)); });
  on("click", (event) => {
    const button = closest(event, "[data-filters]");
    if (button) button.setAttribute("aria-expanded", String(button.form.classList.toggle("is-open")));
  });
  const countFilters = () => {
    for (const form of filterForms()) {
      form.classList.remove("is-dirty");
      dependents(form.parentElement);
      const set = [...form.elements].filter((f) => f.name && f.type !== "hidden" && !f.matches("[data-search]")
        && (f.matches("[type=checkbox], [type=radio]") ? f.checked && f.value : f.value)).length;
      for (const el of form.querySelectorAll("[data-filters-set]")) el.textContent = set > 0 ? String(set) : "";
    }
  };
  // Going back in the history shows what the address says, not what was chosen on the way out.
  window.addEventListener("pageshow", () => {
    for (const form of filterForms()) form.reset();
    countFilters();
  });
  on("change", (event) => {
    const form = closest(event, "form[data-autosubmit]");
    if (form && event.target.matches("select, input[type=checkbox], input[type=radio], input[type=datetime-local], input[type=date]")) form.requestSubmit();
  });
  // Fields that say nothing stay out of the address.
  on("submit", (event) => {
    const form = closest(event, "form[method=get]");
    if (!form) return;
    for (const field of form.elements) {
      if (field.name && field.value === "" && !field.disabled) {
        field.disabled = true;
        setTimeout(() => { field.disabled = false; }, 0);
      }
    }
  }, true);

  // A form is sent once: pressing twice makes one request. What takes longer than a moment says so on its button. What comes back from
  // the browser's cache is free again, and so is a form whose response is a file: the page stays.
  const busy = (button) => {
    const label = button.querySelector("span:not(.sr-only)");
    button.setAttribute("aria-busy", "true");
    if (label && button.matches(".btn:not(.btn-icon)")) {
      button.dataset.label = label.textContent;
      label.textContent = "Working…";
    }
    say("Working…");
  };
  const free = (form) => {
    delete form.dataset.sent;
    for (const button of document.querySelectorAll("button[aria-busy=true]")) {
      const label = button.querySelector("span:not(.sr-only)");
      if (label && button.dataset.label) label.textContent = button.dataset.label;
      delete button.dataset.label;
      button.removeAttribute("aria-busy");
    }
  };
  on("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post" || form.hasAttribute("data-theme-form")) return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    if (form.matches("[hx-post], [data-hx-post]")) return; // htmx has its own: hx-disabled-elt
    form.dataset.sent = "true";
    const button = event.submitter ?? form.querySelector("button:not([type=button])");
    if (form.hasAttribute("data-download")) setTimeout(free, 2000, form);
    else if (button) setTimeout(() => { if (form.dataset.sent) busy(button); }, 300);
  });
  window.addEventListener("pageshow", () => { for (const form of document.querySelectorAll("form[data-sent]")) free(form); });
  // A form that is sent in place says so in the same way. One that leads to another page keeps saying so until that page is there.
  const sentInPlace = (event) => event.target instanceof HTMLFormElement && event.target.method === "post" && !event.target.hasAttribute("data-theme-form");
  on("htmx:beforeRequest", (event) => {
    if (!sentInPlace(event) || event.defaultPrevented) return;
    const form = event.target, button = event.detail.requestConfig.triggeringEvent?.submitter ?? form.querySelector("button:not([type=button])");
    form.dataset.sent = "true";
    if (button) setTimeout(() => { if (form.dataset.sent) busy(button); }, 300);
  });
  on("htmx:afterRequest", (event) => { if (sentInPlace(event) && !event.detail.xhr?.getResponseHeader("HX-Redirect")) free(event.target); });

  // Parts of a form that belong to one choice: data-when="field=value|value".
  const dependents = (root) => {
    for (const part of root.querySelectorAll("[data-when]")) {
      const [name, values] = part.dataset.when.split("=");
      const form = part.closest("form");
      if (!form) continue;
      const data = new FormData(form).getAll(name);
      part.hidden = !values.split("|").some((v) => data.includes(v));
    }
  };
  on("change", (event) => { const form = closest(event, "form"); if (form) dependents(form); });

  // A form that says how many of its fields differ from what is stored.
  const named = (field) => field.name && field.type !== "hidden";
  const changed = (field) => field instanceof HTMLSelectElement
    ? [...field.options].some((o) => o.selected !== o.defaultSelected) && field.value !== ([...field.options].find((o) => o.defaultSelected) ?? field.options[0])?.value
    : field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked && (field.type === "checkbox" || field.checked)
    : field.value !== field.defaultValue;
  const count = (event) => {
    const form = closest(event, "form"), note = form?.querySelector("[data-changes]");
    if (!note) return;
    const n = [...form.elements].filter((field) => named(field) && changed(field)).length;
    note.textContent = n === 0 ? "" : n === 1 ? "1 change" : `${n} changes`;
  };
  on("input", count);
  on("change", count);

  // A preview follows its form: data-preview is the id of the frame.
  let following = 0;
  on("input", (event) => {
    const form = closest(event, "form[data-preview]");
    if (!form) return;
    clearTimeout(following);
    following = setTimeout(() => {
      const frame = document.getElementById(form.dataset.preview);
      // replace: the reader's way back leads to the page before, not through what was typed
      frame?.contentWindow.location.replace(`${frame.src.split("?")[0]}?${new URLSearchParams(new FormData(form))}`);
    }, 300);
  });

  // Flashes are put away by hand.
  on("click", (event) => {
    const button = closest(event, "[data-dismiss]");
    if (button) { event.preventDefault(); button.closest(button.dataset.dismiss)?.remove(); }
  });

  // Elements with data-live show whether the page is current.
  const live = (state, text) => {
    for (const el of document.querySelectorAll("[data-live]")) {
      el.dataset.state = state;
      const label = el.querySelector("[data-live-text]");
      if (label) label.textContent = text;
    }
  };

  // A page polls only while somebody sees it. Where a stream says what has changed, it asks when something has, and twice
  // a minute. A stream that is silent, as behind a proxy that buffers, counts for nothing.
  const polls = (event) => event.target instanceof Element && event.target.matches("[data-poll]");
  const asked = new WeakMap(); // element -> when it was last requested
  let stream = null, heard = -Infinity, changedAt = -Infinity, again = 0;
  const streams = () => performance.now() - heard < 25000;
  on("htmx:beforeRequest", (event) => {
    if (!polls(event)) return;
    const now = performance.now(), last = asked.get(event.target) ?? -Infinity;
    if (document.hidden || event.target.dataset.poll === "changes" && streams() && changedAt <= last && now - last < 30000) event.preventDefault();
    else asked.set(event.target, now);
  });
  const closeStream = (wait) => {
    stream?.close();
    stream = null;
    heard = -Infinity;
    clearTimeout(again);
    if (wait) again = setTimeout(openStream, wait * (1 + Math.random()));
  };
  const openStream = () => {
    const root = location.pathname.match(/^\/t\/[^/]+/);
    if (stream || document.hidden || !root || !document.querySelector("[data-poll=changes]") || document.querySelector(".view-as")) return;
    stream = new EventSource(`${root[0]}/changes`);
    const hear = () => { heard = performance.now(); };
    stream.addEventListener("open", (event) => { if (event.data) hear(); });
    stream.addEventListener("beat", hear);
    stream.addEventListener("change", () => {
      hear();
      changedAt = heard;
      for (const el of document.querySelectorAll("[data-poll=changes]")) htmx.trigger(el, "posthorn:changed");
    });
    // One that was refused is tried again later than one that broke off.
    stream.onerror = () => closeStream(stream.readyState === EventSource.CLOSED ? 60000 : 5000);
  };
  on("visibilitychange", () => { if (document.hidden) closeStream(0); else openStream(); });
  window.addEventListener("pagehide", () => closeStream(0));
  window.addEventListener("pageshow", () => openStream());

  // Pages that change in place. An answer to a question that is no longer asked changes nothing; one that is no page of
  // this kind is opened as a page of its own.
  const inPlace = (event) => event.detail.requestConfig?.headers?.["HX-Boosted"] === "true";
  const scrolled = new Map(); // path -> where the reader was
  on("htmx:beforeHistorySave", (event) => scrolled.set(event.detail.path, scrollY));
  let lastSettled = null;
  on("htmx:historyRestore", (event) => requestAnimationFrame(() => {
    settled();
    scrollTo(0, scrolled.get(event.detail.path) ?? 0);
  }));
  on("htmx:beforeHistoryUpdate", (event) => {
    // A form that was rejected has no address of its own.
    if (inPlace(event) && event.detail.requestConfig.verb !== "get") Object.assign(event.detail.history, { type: "replace", path: location.pathname + location.search });
  });
  on("htmx:beforeSwap", (event) => {
    const { detail } = event, { pathInfo, xhr } = detail;
    if (polls(event) && event.target.getAttribute("hx-get") !== pathInfo.requestPath) detail.shouldSwap = false;
    if (!inPlace(event) || xhr.status === 204) return;
    const page = /<main id="main" class="content/.test(xhr.responseText);
    if (page) { detail.shouldSwap = true; detail.isError = false; }
    else if (detail.requestConfig.verb === "get") { detail.shouldSwap = false; location.assign(pathInfo.finalRequestPath ?? pathInfo.requestPath); }
    else detail.shouldSwap = true;
  });
  // A form that leads to a part of its own page loads it again: a browser would only scroll to the part.
  on("htmx:beforeOnLoad", (event) => {
    const to = event.detail.xhr.getResponseHeader("HX-Redirect");
    const url = to && new URL(to, location.href);
    if (!url || !url.hash || url.pathname + url.search !== location.pathname + location.search) return;
    event.preventDefault();
    location.hash = url.hash;
    location.reload();
  });
  on("htmx:afterRequest", (event) => {
    if (!polls(event)) return;
    const status = event.detail.xhr?.status;
    if (event.detail.successful) live("on", "Live");
    else if ([401, 403, 404, 410].includes(status)) {
      // The reader lost access, or what the page shows was deleted: the page itself says which. One that was loaded a moment ago
      // would only be loaded again and again.
      if (performance.now() > 15000) location.reload();
      else live("off", "Not live");
    }
    else live("off", "Connecting again");
  });

  // A swap that failed keeps the page as it is and says so.
  const unreachable = () => say("The server could not be reached. What you see may be old.");
  on("htmx:sendError", unreachable);
  on("htmx:afterSettle", (event) => {
    freshen();
    localFields(document);
    countFilters();
    const root = event.target instanceof Element ? event.target : document;
    dependents(root);
    if (inPlace(event) && event.detail.xhr !== lastSettled) {
      lastSettled = event.detail.xhr;
      settled();
    }
    for (const list of document.querySelectorAll("[data-bulk]")) {
      const kept = chosen.get(list.id);
      if (kept) for (const box of list.querySelectorAll("input[type=checkbox][name=id]")) box.checked = kept.has(box.value);
      tally(list);
    }
  });

  // A portal in a frame tells the page around it that it is open, or that it needs a new link. Neither is a secret: the
  // content security policy names the pages that can be around it.
  const tell = ({ dataset }) => parent.postMessage({ type: `posthorn:${dataset.portalSays}`, path: location.pathname + location.search, seconds: Number(dataset.portalSeconds ?? 0) }, "*");
  on("click", (event) => { const button = closest(event, "button[data-portal-says]"); if (button) tell(button); });
  const greet = () => {
    if (parent === window) return;
    for (const el of document.querySelectorAll("[data-portal-says]")) {
      if (el.matches("button")) el.hidden = false;
      else tell(el);
    }
  };

  // What a page's content needs when it is there, loaded or changed in place.
  function settled() {
    const tab = document.querySelector(".tabs [aria-current]");
    if (tab) {
      const strip = tab.closest(".tabs"), ahead = 48; // of the tab after it is seen, too
      strip.scrollLeft += tab.getBoundingClientRect().right - strip.getBoundingClientRect().right + ahead;
    }
    // A dialog whose form was refused comes open; here it becomes modal.
    const refused = document.querySelector("dialog[open]");
    if (refused) { refused.close(); show(refused); }
    else document.querySelector("[data-error-summary]")?.focus();
    openStream();
  }

  const start = () => {
    greet();
    freshen();
    localFields(document);
    dependents(document);
    for (const list of document.querySelectorAll("[data-bulk]")) tally(list);
    settled();
  };
  if (document.readyState === "loading") on("DOMContentLoaded", start);
  else start();

  // Data of events: another type brings its example, unless the data was edited, and JSON is checked while it is typed.
  const judge = (area) => {
    let note = area.parentElement.querySelector("[data-json-note]");
    if (!note) {
      note = document.createElement("p");
      note.dataset.jsonNote = "";
      note.setAttribute("role", "status");
      area.after(note);
    }
    let wrong = "";
    try { JSON.parse(area.value); } catch (error) {
      const at = /position (\d+)/.exec(error.message);
      wrong = at ? "Not valid JSON: check line " + area.value.slice(0, Number(at[1])).split("\n").length + "." : "Not valid JSON.";
    }
    note.className = wrong ? "field-error" : "field-hint";
    note.textContent = wrong || "Valid JSON.";
  };
  const soon = new WeakMap();
  on("input", (event) => {
    const area = closest(event, "textarea[data-json]");
    if (!area) return;
    clearTimeout(soon.get(area));
    soon.set(area, setTimeout(() => judge(area), 300));
  });
  on("change", async (event) => {
    const type = closest(event, "[data-example]");
    const area = type?.form?.querySelector("textarea[data-json]");
    if (!area || area.value !== area.defaultValue) return;
    const url = new URL(type.dataset.example, location.href);
    url.searchParams.set("type", type.value);
    try {
      const page = new DOMParser().parseFromString(await (await fetch(url)).text(), "text/html");
      const found = page.querySelector("textarea[data-json]");
      if (found && area.value === area.defaultValue) area.value = area.defaultValue = found.value;
    } catch { /* the data stays */ }
  });
})();

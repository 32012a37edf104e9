// The documentation's script: search while typing, copy buttons, and the theme without a reload. Everything works without it.
(() => {
  "use strict";
  const announce = (text) => { document.getElementById("announcer").textContent = text; };

  // Try it: the request goes to this server, without cookies. The key is in the field and nowhere else.
  for (const form of document.querySelectorAll("form[data-try]")) {
    form.hidden = false;
    const part = (name) => form.querySelector(`[data-try-${name}]`);
    const request = () => {
      const { named, method } = form.dataset, key = form.elements.key.value.trim(), tenant = form.elements.tenant_id?.value.trim();
      let path = named && tenant && key.startsWith("php_") ? named.replace("{tenant_id}", encodeURIComponent(tenant)) : form.dataset.try;
      const query = new URLSearchParams(), headers = { Accept: "application/json" };
      for (const field of form.querySelectorAll("[data-where]")) {
        const value = field.value.trim();
        if (field.dataset.where === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
        else if (value && field.dataset.where === "query") query.append(field.name, value);
        else if (value) headers[field.name] = value;
      }
      const body = form.elements.body?.value.trim() || undefined;
      if (body) headers["Content-Type"] = "application/json";
      return { url: location.origin + path + (query.size ? `?${query}` : ""), method, headers, body, key };
    };
    const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
    const curl = ({ url, method, headers, body }) => [
      `curl ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`,
      '-H "Authorization: Bearer $POSTHORN_API_KEY"',
      ...Object.entries(headers).filter(([name]) => name !== "Accept").map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
      ...(body ? [`-d ${quoted(body)}`] : []),
    ].join(" \\\n  ");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const asked = request(), button = form.querySelector("[type=submit]"), began = performance.now();
      button.disabled = true;
      part("curl").textContent = curl(asked);
      let status, text = "", id = "";
      try {
        const response = await fetch(asked.url, {
          method: asked.method, body: asked.body, headers: { ...asked.headers, Authorization: `Bearer ${asked.key}` }, credentials: "omit", cache: "no-store", redirect: "error",
        });
        status = `${response.status} ${response.statusText}`.trim();
        id = response.headers.get("X-Request-Id") ?? "";
        text = await response.text();
        try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it is */ }
      } catch {
        status = "No response";
        text = "The server can't be reached from this page.";
      }
      part("status").textContent = status;
      part("took").textContent = `${Math.round(performance.now() - began)} ms${id ? ` · ${id}` : ""}`;
      part("body").textContent = text || "(empty)";
      part("response").hidden = false;
      button.disabled = false;
    });
  }

  // Copy buttons.
  for (const pre of document.querySelectorAll("pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-small docs-copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent.trimEnd());
        button.textContent = "Copied";
        announce("Copied");
      } catch {
        announce("Copying failed");
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    const frame = document.createElement("div");
    frame.className = "docs-pre";
    pre.replaceWith(frame);
    frame.append(pre, button);
  }

  // The navigation shows where the page is in it.
  const here = document.querySelector(".docs-nav [aria-current]");
  if (here) {
    const nav = here.closest(".docs-nav");
    nav.scrollTop += here.getBoundingClientRect().top - nav.getBoundingClientRect().top - nav.clientHeight / 3;
  }

  // The table of contents marks the section that is read.
  const places = [...document.querySelectorAll("[data-contents] a")].map((link) => [link, document.getElementById(decodeURIComponent(link.hash.slice(1)))]).filter(([, to]) => to);
  const mark = () => {
    let at = null;
    for (const [link, to] of places) if (to.getBoundingClientRect().top < 120) at = link;
    for (const [link] of places) {
      if (link === at) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
  };
  if (places.length) {
    mark();
    document.addEventListener("scroll", mark, { passive: true });
  }

  // The language of samples is kept for the next page.
  const kept = "posthorn-docs-language";
  const remember = (value) => { try { localStorage.setItem(kept, value); } catch { /* private browsing */ } };
  let language = null;
  try { language = localStorage.getItem(kept); } catch { /* private browsing */ }
  for (const input of document.querySelectorAll(".docs-samples input")) {
    if (input.value === language) input.checked = true;
    input.addEventListener("change", () => remember(input.value));
  }

  // The theme: the form works by itself; here the page changes immediately.
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-theme-form]");
    if (!form) return;
    event.preventDefault();
    const theme = event.submitter.value;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.value === theme));
    fetch(form.action, { method: "POST", body: new URLSearchParams({ theme }), headers: { "HX-Request": "true" } }).catch(() => {});
  });

  // Search, as it is typed.
  const form = document.querySelector("form[data-search-docs]");
  const input = form.querySelector("input");
  const list = form.querySelector("[data-hits]");
  const hide = () => { list.hidden = true; list.replaceChildren(); };
  let asked = 0;
  const show = async () => {
    const query = input.value.trim(), run = ++asked;
    if (!query) return hide();
    let found;
    try { found = await (await fetch(`${form.action}.json?q=${encodeURIComponent(query)}`)).json(); } catch { return hide(); }
    if (run !== asked) return;
    list.replaceChildren();
    for (const hit of found) {
      const link = document.createElement("a");
      link.href = hit.path;
      const title = document.createElement("b"), page = document.createElement("small");
      title.textContent = hit.title;
      page.textContent = hit.page;
      link.append(title, page);
      list.append(link);
    }
    if (!found.length) list.append("No results");
    list.hidden = false;
    announce(found.length ? `${found.length} results` : "No results");
  };
  let typing = 0;
  input.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(show, 150); });
  form.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    if (event.key === "Escape") { hide(); input.focus(); }
    if (event.key === "ArrowDown" && links.length) { event.preventDefault(); links[Math.min(at + 1, links.length - 1)].focus(); }
    if (event.key === "ArrowUp" && at >= 0) { event.preventDefault(); (links[at - 1] ?? input).focus(); }
  });
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) hide(); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
})();

// Passkeys: a form with data-passkey ("get" or "create") asks the browser for one before it is sent. It stays hidden
// where the browser has no passkeys, or where the page has an address instead of a host name.
"use strict";

(() => {
  const credentials = window.PublicKeyCredential;
  const able = credentials && credentials.parseRequestOptionsFromJSON && credentials.parseCreationOptionsFromJSON && !/^[\d.]+$|:/.test(location.hostname);
  if (!able) return;
  const reveal = () => {
    for (const part of document.querySelectorAll("[data-needs-passkeys]")) part.hidden = false;
    for (const part of document.querySelectorAll("[data-no-passkeys]")) part.hidden = true;
  };
  reveal();
  document.addEventListener("htmx:afterSettle", reveal);

  const ask = async (form) => {
    const answer = await fetch(form.dataset.options, { method: "POST", headers: { Accept: "application/json" } });
    const said = await answer.json();
    if (said.code === "sign_in_again") {
      const console = location.pathname.startsWith("/console");
      location.assign(console ? "/console/sign-in?next=%2Fconsole%2Faccount" : "/account/confirm?next=%2Faccount");
      return null;
    }
    if (!answer.ok) throw new Error(said.detail);
    const credential = form.dataset.passkey === "create"
      ? await navigator.credentials.create({ publicKey: credentials.parseCreationOptionsFromJSON(said.publicKey) })
      : await navigator.credentials.get({ publicKey: credentials.parseRequestOptionsFromJSON(said.publicKey) });
    return { token: said.token, credential: JSON.stringify(credential.toJSON()) };
  };

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !form.dataset.passkey) return;
    event.preventDefault();
    const wrong = form.querySelector("[data-passkey-error]");
    const button = form.querySelector("button");
    wrong.hidden = true;
    button.disabled = true;
    try {
      const got = await ask(form);
      if (!got) return;
      form.elements.namedItem("token").value = got.token;
      form.elements.namedItem("credential").value = got.credential;
      form.submit();
    } catch (error) {
      const canceled = error.name === "NotAllowedError" || error.name === "AbortError";
      const known = error.name === "InvalidStateError" ? "This device already has a passkey for your account." : error.message;
      wrong.textContent = canceled ? "No passkey was used: the request was canceled or took too long." : known;
      wrong.hidden = false;
      button.disabled = false;
    }
  });
})();

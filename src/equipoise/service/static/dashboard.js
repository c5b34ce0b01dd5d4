// The page of an audit asks for news every five seconds; the prices follow the sliders.
"use strict";

const live = document.getElementById("live");
if (live) {
  setInterval(async () => {
    // Somebody who is filling in a form or reading along by keyboard is not disturbed.
    if (document.hidden || live.contains(document.activeElement)) return;
    const answer = await fetch(live.dataset.live, { credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return;
    const news = await answer.text();
    if (live.contains(document.activeElement)) return;
    const unfolded = [...live.querySelectorAll("details[open][id]")].map((details) => details.id);
    live.innerHTML = news;
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  }, 5000);
}

// A login link holds its token behind the "#", which browsers keep to themselves. Pasted into a tab
// that shows the login page, it changes nothing but the "#".
const logIn = () => {
  if (!location.hash.startsWith("#token=")) return;
  const login = document.createElement("form");
  login.method = "post";
  login.action = "/login";
  const token = document.createElement("input");
  token.type = "hidden";
  token.name = "token";
  token.value = location.hash.slice("#token=".length);
  login.append(token);
  document.body.append(login);
  history.replaceState(null, "", location.pathname);
  login.submit();
};
addEventListener("hashchange", logIn);
logIn();

// A table that is refused stays chosen; only what is to be said of it is asked again.
const table = document.getElementById("table");
if (table) {
  table.addEventListener("submit", async (event) => {
    if (event.submitter?.name) return;
    event.preventDefault();
    table.setAttribute("aria-busy", "true");
    const answer = await fetch("/check", { method: "POST", body: new FormData(table) });
    const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
    const counted = shown.getElementById("whatif"), again = shown.getElementById("table");
    table.removeAttribute("aria-busy");
    if (again) {
      again.querySelector("input[type=file]").replaceWith(table.querySelector("input[type=file]"));
      table.replaceChildren(...again.childNodes);
      table.scrollIntoView();
    } else if (counted) {
      counted.hidden = true;
      document.body.append(counted);
      counted.submit();
    } else {
      table.submit();
    }
  });
}

const form = document.getElementById("whatif");
if (form) {
  const prices = document.getElementById("prices");
  const begin = document.getElementById("begin");
  let waiting = null, turn = 0;
  const show = () => {
    for (const slider of form.querySelectorAll("input[type=range]")) {
      slider.parentElement.querySelector("output").textContent = slider.value;
    }
  };
  const price = async () => {
    const mine = ++turn;
    prices.setAttribute("aria-busy", "true");
    const data = new FormData(form);
    if (begin) {
      for (const name of ["metric", "gamma", "epsilon", "delta", "feature", "label"]) {
        begin.elements[name].value = data.get(name) ?? "";
      }
    }
    const answer = await fetch("/check", { method: "POST", body: data, headers: { "x-part": "prices" } });
    if (mine === turn) {
      if (answer.ok) prices.innerHTML = await answer.text();
      prices.removeAttribute("aria-busy");
    }
  };
  form.addEventListener("input", () => { show(); clearTimeout(waiting); waiting = setTimeout(price, 250); });
}

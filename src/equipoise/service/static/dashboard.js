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

// The page of historical data sends its forms without leaving, so that a chosen file stays chosen.
const check = document.getElementById("check");
if (check) {
  const files = (root) => root.querySelectorAll("#reading input[type=file]");
  const isReading = (form) => form.matches("#reading");  // a field called "id" hides form.id

  const show = (answer, form, step) => {
    const news = answer.getElementById("check");
    const reading = check.querySelector("#reading");
    if (isReading(form)) {
      for (const file of files(news)) {
        const chosen = check.querySelector(`#reading input[name=${file.name}]`);
        if (chosen) file.replaceWith(chosen);
      }
    } else if (reading) {
      news.querySelector("#reading").replaceWith(reading);
    }
    check.replaceChildren(...news.childNodes);
    if (step === "values") return;  // the values stand below the column that was chosen
    const place = step === "columns" ? "#reading > section:nth-of-type(2)" : ["plan", "trials"].includes(step) ? "#plan" : "#result";
    (check.querySelector("[role=alert]") ?? check.querySelector(place))?.scrollIntoView();
  };

  const send = async (form, button) => {
    const data = new FormData(form);
    if (button?.name) data.append(button.name, button.value);
    if (button?.value === "values") {
      for (const file of files(check)) data.delete(file.name);
    }
    check.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.action, { method: "POST", body: data });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (page.getElementById("check")) show(page, form, button?.value);
      else form.submit();  // it shows what the server says, such as that the session has ended
    } finally {
      check.removeAttribute("aria-busy");
    }
  };

  let waiting = null, turn = 0;

  check.addEventListener("submit", (event) => {
    const button = event.submitter;
    const form = event.target;
    if (!form.action.endsWith("/check") || button?.name === "example" || "whole" in (button?.dataset ?? {})) return;
    event.preventDefault();
    clearTimeout(waiting);
    turn++;  // an answer that is still under way is out of date
    send(form, button);
  });

  // A slider or a price plans again at once. Only the figures are replaced, so the slider keeps the focus.
  const planAgain = async (form) => {
    const mine = ++turn;
    const data = new FormData(form);
    data.append("step", "plan");
    const forecast = check.querySelector("#forecast");
    forecast.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.action, { method: "POST", body: data });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const news = page.getElementById("forecast") ?? page.querySelector("[role=alert]");
      if (mine !== turn || !forecast.isConnected || !news) return;
      forecast.replaceChildren(...(news.id ? news.childNodes : [news]));
      const prices = page.querySelector("#begin .sent");
      if (prices) check.querySelector("#begin .sent")?.replaceWith(prices);
    } finally {
      if (mine === turn) forecast.removeAttribute("aria-busy");
    }
  };
  check.addEventListener("input", (event) => {
    const form = event.target.closest("#prices");
    if (!form) return;
    const slider = event.target.closest(".slider");
    if (slider && event.target.type === "range") {
      slider.querySelector("output").textContent = event.target.value;
      slider.querySelector("input[type=checkbox]").checked = true;
    }
    clearTimeout(waiting);
    waiting = setTimeout(planAgain, 250, form);
  });

  check.addEventListener("change", (event) => {
    const form = event.target.closest("#reading");
    const isKnown = form?.querySelector("[name=profile]");
    if (!isKnown) return;
    if ("refresh" in event.target.dataset) send(form, { name: "step", value: "values" });
    if (event.target.type === "file") send(form, { name: "step", value: "columns" });
  });
}

// What moves: the page of an audit follows its events, the prices follow the sliders.
"use strict";

const live = document.getElementById("live");
if (live && window.EventSource) {
  const base = live.dataset.live;
  let busy = false, again = false;
  const refresh = async () => {
    // Somebody who is filling in a form or reading along by keyboard is not disturbed.
    if (live.contains(document.activeElement)) { again = true; return; }
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(base + "/live", { credentials: "same-origin" });
      if (answer.ok && !answer.redirected) live.innerHTML = await answer.text();
    } finally {
      busy = false;
      if (again) { again = false; setTimeout(refresh, 1000); }
    }
  };
  const stream = new EventSource(base + "/stream");
  let first = true;
  stream.onmessage = (event) => {
    const told = JSON.parse(event.data);
    if (first && told.weighed) { first = false; if (!live.querySelector(".loading")) return; }
    refresh();
  };
  live.addEventListener("focusout", () => { if (again) { again = false; refresh(); } });
  window.addEventListener("pagehide", () => stream.close());
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
      for (const name of ["metric", "gamma", "epsilon", "delta", "feature", "label", "no_better", "limits"]) {
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

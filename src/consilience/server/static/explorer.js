// Answers by key or click, and the refit. Everything else works without it.
"use strict";

async function ask(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: { "X-Consilience": "1", ...(body && { "Content-Type": "application/json" }) },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  let told;
  try { told = JSON.parse(text); } catch { told = { detail: text }; }
  if (!response.ok) {
    const why = typeof told.detail === "string" ? told.detail : "It was not understood.";
    throw Object.assign(new Error(why), { status: response.status });
  }
  return told;
}

// What was answered in this window about these claims, the last at the end: all that the review page may undo.
function given(claims) {
  const key = `consilience answers ${claims}`;
  const read = () => { try { return JSON.parse(sessionStorage.getItem(key)) ?? []; } catch { return []; } };
  const write = rows => sessionStorage.setItem(key, JSON.stringify(rows.slice(-100)));
  return {
    last: () => read().at(-1),
    add: ({ entry, object, value }) => write([...read(), { entry, text: `${object}: ${value ?? "skipped"}` }]),
    drop: () => write(read().slice(0, -1)),
  };
}

const PAUSE = 300;  // milliseconds until keys count: a key that was meant for the page before must not answer here

function reviewing(box) {
  const told = box.querySelector(".told"), number = Number(box.dataset.number);
  const mine = box.dataset.claims === undefined ? null : given(box.dataset.claims);
  let busy = false, ready = false;
  async function change(path, body, then) {
    if (busy) return;  // one key, one answer
    busy = true;
    told.textContent = "Storing …";
    try {
      const stored = await ask("POST", path, body);
      then?.(stored);
      location.reload();
    } catch (error) {
      told.textContent = error.message;
      if (error.status === 404) { mine?.drop(); offer(); }  // it was taken back elsewhere
      busy = false;
    }
  }
  const choices = [...box.querySelectorAll("[data-value]")], other = box.querySelector("#other");
  const skip = box.querySelector("[data-skip]"), undo = box.querySelector("[data-undo]");
  const choose = value => change("/api/reviews", { number, value }, mine?.add);
  for (const choice of choices) choice.addEventListener("click", () => choose(JSON.parse(choice.dataset.value)));
  skip?.addEventListener("click", () => change("/api/reviews/skip", { number }, mine?.add));
  function offer() {
    if (!mine) return;
    const last = mine.last();
    undo.hidden = !last;
    undo.dataset.undo = last?.entry;
    undo.querySelector("bdi").textContent = last?.text.slice(0, 60);
  }
  offer();
  undo?.addEventListener("click", () => change("/api/reviews/undo", { entry: Number(undo.dataset.undo) }, mine?.drop));
  box.querySelector("[data-other]")?.addEventListener("click", () => other.value.trim() && choose(other.value));
  other?.addEventListener("keydown", event => event.key === "Enter" && other.value.trim() && choose(other.value));
  document.addEventListener("keydown", event => {
    if (!ready || event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const pressed = { s: skip, u: undo }[event.key] ?? (/^[1-9]$/.test(event.key) ? choices[event.key - 1] : null);
    if (pressed && !pressed.hidden) { event.preventDefault(); pressed.click(); }
  });
  const wake = () => setTimeout(() => { ready = true; box.dataset.ready = ""; }, PAUSE);
  if (document.readyState === "complete") wake(); else addEventListener("load", wake);
}

function refitting(box) {
  const told = box.querySelector(".told"), bar = box.querySelector("progress");
  const start = box.querySelector("[data-start]"), cancel = box.querySelector("[data-cancel]");
  function show(refit) {
    const running = refit.state === "running";
    start.disabled = running;
    cancel.disabled = !running;
    bar.hidden = !running;
    const at = refit.stage ? `: ${refit.stage}${refit.sweep ? `, sweep ${refit.sweep}` : ""}` : "";
    told.textContent = running ? `${refit.message}${at} (${refit.seconds.toFixed(0)} s)` : refit.message;
    return running;
  }
  async function follow() {
    try {
      const refit = await ask("GET", "/api/refit");
      if (show(refit)) setTimeout(follow, 500);
      else if (refit.state === "done") location.reload();
    } catch (error) { told.textContent = error.message; }
  }
  start.addEventListener("click", async () => {
    try { show(await ask("POST", "/api/refit")); follow(); } catch (error) { told.textContent = error.message; }
  });
  cancel.addEventListener("click", async () => {
    try { show(await ask("DELETE", "/api/refit")); } catch (error) { told.textContent = error.message; }
  });
  show({ state: box.dataset.state, message: told.textContent, seconds: 0 });
  if (box.dataset.state === "running") follow();
}

document.querySelectorAll("[data-review]").forEach(reviewing);
document.querySelectorAll("[data-refit]").forEach(refitting);

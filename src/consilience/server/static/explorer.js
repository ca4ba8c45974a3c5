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
  if (!response.ok) throw new Error(typeof told.detail === "string" ? told.detail : "It was not understood.");
  return told;
}

function reviewing(box) {
  const told = box.querySelector(".told"), number = Number(box.dataset.number);
  let busy = false;
  async function change(path, body) {
    if (busy) return;  // one key, one answer
    busy = true;
    told.textContent = "Storing …";
    try {
      await ask("POST", path, body);
      location.reload();
    } catch (error) {
      told.textContent = error.message;
      busy = false;
    }
  }
  const choices = [...box.querySelectorAll("[data-value]")], other = box.querySelector("#other");
  const skip = box.querySelector("[data-skip]"), undo = box.querySelector("[data-undo]");
  const choose = value => change("/api/reviews", { number, value });
  for (const choice of choices) choice.addEventListener("click", () => choose(JSON.parse(choice.dataset.value)));
  skip?.addEventListener("click", () => change("/api/reviews/skip", { number }));
  undo.addEventListener("click", () => change("/api/reviews/undo"));
  box.querySelector("[data-other]")?.addEventListener("click", () => other.value.trim() && choose(other.value));
  other?.addEventListener("keydown", event => event.key === "Enter" && other.value.trim() && choose(other.value));
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (event.target.closest("input, textarea, select")) return;
    const pressed = { s: skip, u: undo }[event.key] ?? (/^[1-9]$/.test(event.key) ? choices[event.key - 1] : null);
    if (pressed) { event.preventDefault(); pressed.click(); }
  });
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

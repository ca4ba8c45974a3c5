"""What a reader would notice of a page: what sticks out of it, where the keyboard is, what is hard to read."""

from __future__ import annotations

from playwright.sync_api import Page

STICKING_OUT = """() => {
  const width = document.documentElement.clientWidth;
  const clipped = node => { for (let up = node.parentElement; up; up = up.parentElement)
    if (getComputedStyle(up).overflowX !== 'visible' || up.tagName === 'svg') return true; return false; };
  const out = [...document.querySelectorAll('body *')].filter(node => !clipped(node) && !node.closest('.skip')
    && (node.getBoundingClientRect().right > width + 1 || node.getBoundingClientRect().left < -1));
  const found = out.map(node => node.tagName + '.' + node.className);
  if (document.documentElement.scrollWidth > width) found.push('the page scrolls sideways');
  return found; }"""

FOCUS = """() => {
  const node = document.activeElement, style = getComputedStyle(node);
  return { tag: node.tagName.toLowerCase(), text: node.textContent.trim().slice(0, 60),
           outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 }; }"""

CONTRAST = """() => {
  const channel = x => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = node => { for (; node; node = node.parentElement) {
    const c = parts(getComputedStyle(node).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; }
    return [255, 255, 255]; };
  const faint = new Set();
  for (const node of document.querySelectorAll('body *')) {
    if (node.closest('svg') || ![...node.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const a = light(parts(getComputedStyle(node).color)), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.add(node.tagName + '.' + node.className + ' ' + ratio.toFixed(2));
  }
  return [...faint]; }"""


def sticking_out(page: Page) -> list[str]:
    """Elements that reach beyond the window, but for those inside a box that scrolls."""
    return list(page.evaluate(STICKING_OUT))


def faint(page: Page) -> list[str]:
    """Elements whose text has a contrast below 4.5 to 1 with what is behind it."""
    return list(page.evaluate(CONTRAST))


def tab_stops(page: Page, most: int = 200) -> list[dict[str, object]]:
    """What the Tab key reaches, in order: tag, text, and whether it shows that it is reached."""
    stops: list[dict[str, object]] = []
    for _ in range(most):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stop["tag"] == "body":
            break
        stops.append(stop)
    return stops

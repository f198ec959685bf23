// SPDX-License-Identifier: Apache-2.0
// What is wrong with the page on the screen, as a list of texts.
(() => {
  const found = [];
  const text = (element) => element.textContent.trim().replace(/\s+/g, " ").slice(0, 60);

  // Red boxes are elements of Sphinx or, with Furo, content that a style adds.
  for (const element of document.querySelectorAll(".content :not(pre *)")) {
    if (element.matches(".system-message, .problematic")) {
      found.push(`an error of Sphinx: ${text(element)}`);
    }
    for (const place of ["::before", "::after"]) {
      const added = getComputedStyle(element, place).content;
      if (/\b(ERROR|WARNING)\b/.test(added)) {
        found.push(`a box of the theme: ${added.slice(0, 80)}`);
      }
    }
  }

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    found.push(`the page is ${root.scrollWidth} px wide`);
  }
  for (const element of document.querySelectorAll("article :not(pre *, svg *)")) {
    const lacks = element.scrollWidth - element.clientWidth;
    const isCode = element.closest("pre, div.highlight");
    if (lacks > 1 && !isCode && getComputedStyle(element).overflowX !== "visible") {
      const name = `${element.tagName} ${element.className}`.trim().toLowerCase();
      found.push(`${lacks} px of "${text(element)}" are cut (${name})`);
    }
  }

  // A column that is too narrow for the names in it.
  for (const name of document.querySelectorAll("article td code")) {
    const lines = name.getClientRects().length;
    if (lines > 4) {
      found.push(`a name on ${lines} lines: ${text(name)}`);
    }
  }

  // The rest of a cell that a table of characters took for a row of its own.
  for (const row of document.querySelectorAll("article tbody tr")) {
    const cells = [...row.cells];
    const filled = cells.filter((cell) => cell.textContent.trim() || cell.children.length);
    if (cells.length > 1 && filled.length < 2) {
      found.push(`a row with one cell only: ${text(row)}`);
    }
  }

  for (const image of document.images) {
    if (!image.complete || !image.naturalWidth) {
      found.push(`no picture: ${image.getAttribute("src")}`);
    }
  }
  return found;
})()

// Sorts tables by a click or key press on a column header; without this script the tables are complete, only fixed.
(function () {
  "use strict";
  var announce = document.getElementById("announce");

  function value(row, column) {
    var cell = row.cells[column];
    if (!cell) return null;
    var raw = cell.hasAttribute("data-sort") ? cell.getAttribute("data-sort") : cell.textContent.trim();
    if (raw === "" || raw === "–") return null;
    var number = Number(raw.replace("−", "-"));
    return isNaN(number) ? raw.toLowerCase() : number;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b));
  }

  function sort(table, header, column) {
    var descending = header.getAttribute("aria-sort") === "ascending";
    var body = table.tBodies[0];
    var rows = Array.prototype.slice.call(body.rows).map(function (row, place) {
      return { row: row, key: value(row, column), place: place };
    });
    rows.sort(function (a, b) {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.place - b.place;
      return (descending ? -1 : 1) * compare(a.key, b.key) || a.place - b.place;
    });
    rows.forEach(function (entry) { body.appendChild(entry.row); });
    table.querySelectorAll("th[aria-sort]").forEach(function (other) { other.removeAttribute("aria-sort"); });
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    announce.textContent = "Sorted by " + header.textContent + (descending ? ", descending" : ", ascending");
  }

  document.querySelectorAll("table.sortable").forEach(function (table) {
    var headers = table.tHead.rows[table.tHead.rows.length - 1].cells;
    Array.prototype.forEach.call(headers, function (header, column) {
      var button = document.createElement("button");
      button.type = "button";
      while (header.firstChild) button.appendChild(header.firstChild);
      header.appendChild(button);
      button.addEventListener("click", function () { sort(table, header, column); });
    });
  });

  var folded = [];
  window.addEventListener("beforeprint", function () {
    folded = Array.prototype.slice.call(document.querySelectorAll("details.print:not([open])"));
    folded.forEach(function (d) { d.open = true; });
  });
  window.addEventListener("afterprint", function () { folded.forEach(function (d) { d.open = false; }); });
})();

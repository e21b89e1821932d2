// Draws mask and modified image of an example at any drop rate from rank codes: a pixel is removed at rates[j] if its
// code is at most j. Data is packed as base64 of zlib.
(function () {
  "use strict";
  var root = document.getElementById("explorer");
  var data = JSON.parse(document.getElementById("explorer-data").textContent);
  var area = data.height * data.width;
  function element(name) { return document.getElementById("explorer-" + name); }
  var image = element("image"), estimator = element("estimator"), k = element("k"), slider = element("slider");
  var unpacked = new Map(), turn = 0;

  function unpack(text) {
    if (!unpacked.has(text)) {
      var raw = Uint8Array.from(atob(text), function (c) { return c.charCodeAt(0); });
      var stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
      unpacked.set(text, new Response(stream).arrayBuffer().then(function (b) { return new Uint8Array(b); }));
    }
    return unpacked.get(text);
  }

  function options(select, values) {
    var chosen = select.value;
    select.replaceChildren.apply(select, values.map(function (v) { return new Option(v, v); }));
    if (values.indexOf(chosen) >= 0) select.value = chosen;
  }

  function ks() {
    options(k, data.maps.filter(function (m) { return m.estimator === estimator.value; }).map(function (m) { return m.k; }));
  }

  function put(name, colour) {
    var canvas = element(name), pixels = new ImageData(data.width, data.height);
    for (var i = 0; i < area; i++) {
      var rgb = colour(i);
      pixels.data[4 * i] = rgb[0]; pixels.data[4 * i + 1] = rgb[1]; pixels.data[4 * i + 2] = rgb[2]; pixels.data[4 * i + 3] = 255;
    }
    canvas.width = data.width; canvas.height = data.height;
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }

  // Whether pixel i is removed at step j of the slider (0: nothing; j: rates[j - 1]).
  function removedBy(map, codes, j) {
    if (map.nested) return function (i) { return codes[i] < j; };
    var place = -1;  // masks of measured rates only: the last that the slider has reached
    map.measured.forEach(function (t, d) { if (j > 0 && t <= data.rates[j - 1]) place = d; });
    return function (i) { return place >= 0 && codes[place * area + i] > 0; };
  }

  function nearest(rates, t) {
    return rates.reduce(function (best, r, i) { return Math.abs(r - t) < Math.abs(rates[best] - t) ? i : best; }, 0);
  }

  function draw() {
    var mine = ++turn, m = image.selectedIndex, j = Number(slider.value), rate = j ? data.rates[j - 1] : 0;
    var map = data.maps.find(function (one) { return one.estimator === estimator.value && one.k === k.value; });
    element("rate").textContent = rate.toFixed(2);
    slider.setAttribute("aria-valuetext", "t = " + rate.toFixed(2));
    root.setAttribute("data-ready", "no");
    Promise.all([data.images[m].pixels, data.images[m].fill, map.codes[m]].map(unpack)).then(function (found) {
      if (mine !== turn) return;
      var pixels = found[0], fill = found[1], gone = removedBy(map, found[2], j), count = 0;
      function at(source, i) { return [source[3 * i], source[3 * i + 1], source[3 * i + 2]]; }
      put("input", function (i) { return at(pixels, i); });
      put("mask", function (i) { if (gone(i)) { count++; return [40, 40, 40]; } return [235, 235, 235]; });
      put("modified", function (i) { return at(gone(i) ? fill : pixels, i); });
      if (data.imputedRates.length) {
        var n = nearest(data.imputedRates, rate);
        element("imputed").src = map.imputed[m][n];
        element("imputed-text").textContent = "imputed, t = " + data.imputedRates[n].toFixed(2);
      }
      var place = map.measured.indexOf(rate);
      var answer = place >= 0 && map.answers.length ? " The base model calls the filled image " + map.answers[place][m] + "." : "";
      var measured = map.measured.indexOf(rate) >= 0 ? " (a rate that the study measured)" : "";
      element("status").textContent = data.images[m].label + "; " + estimator.value + ", " + k.value + ", t = " + rate.toFixed(2) + measured +
        ": " + count + " of " + area + " pixels removed." + answer;
      root.setAttribute("data-ready", "yes");
    });
  }

  options(image, data.images.map(function (one) { return one.label; }));
  options(estimator, data.maps.map(function (m) { return m.estimator; }).filter(function (e, i, all) { return all.indexOf(e) === i; }));
  ks();
  var marked = data.rates.filter(function (t) { return data.maps.some(function (map) { return map.measured.indexOf(t) >= 0; }); });
  slider.max = data.rates.length;
  slider.value = data.rates.indexOf(marked[Math.floor(marked.length / 2)]) + 1;
  element("ticks").replaceChildren.apply(element("ticks"), marked.map(function (t) { return new Option("", data.rates.indexOf(t) + 1); }));
  estimator.addEventListener("change", function () { ks(); draw(); });
  [image, k].forEach(function (select) { select.addEventListener("change", draw); });
  slider.addEventListener("input", draw);
  if (typeof DecompressionStream === "undefined") {
    element("status").textContent = "This browser is too old for the explorer (it lacks DecompressionStream); the still pictures work.";
    return;
  }
  draw();
})();

"""The explorer: codes agree with the stored masks, the file stays small, and the browser draws what the store holds."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from helpers import synthetic_study as synthetic
from helpers.browser import BROWSER, NO_BROWSER, dump
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("matplotlib")

import roarfast as rf
from roarfast.report import build
from roarfast.report.examples import Examples, stored_examples
from roarfast.report.explorer import explorer, rank_codes
from roarfast.study.runfolder import RunFolder


def unpack(text: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["exact", "percentile", "strict"]), st.booleans())
def test_codes_agree_with_the_stored_masks_at_every_measured_rate(seed: int, rule: str, tied: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((9, 7)).astype(np.float32)
    values = np.round(values) if tied else values
    drops = [0.1, 0.35, 0.6]
    masks = np.stack([rf.removal_mask(values, t, rule=rule, seed=3) for t in drops])
    rates = sorted({*drops, *(n / 100 for n in range(1, 60))})
    codes = rank_codes(values, masks, drops, rates)
    for t, mask in zip(drops, masks):
        assert np.array_equal(codes <= rates.index(t), mask)
    counts = [int((codes <= j).sum()) for j in range(len(rates))]
    assert counts == sorted(counts), "more goes at a higher rate"
    if rule == "exact":
        assert counts == [int(t * 63) if t not in drops else int(masks[drops.index(t)].sum()) for t in rates]


def examples(size: int = 12, images: int = 3, estimators: int = 2, channels: int = 3) -> list[Examples]:
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (images, size, size, channels), dtype=np.uint8)
    drops, found = [0.1, 0.3, 0.5], []
    for e in range(estimators):
        maps = rng.standard_normal((2, images, size, size)).astype(np.float32)
        masks = np.stack([[rf.removal_mask(one, t) for t in drops] for one in maps])
        modified = np.where(masks[..., None], np.uint8(99), pictures[None, None])
        found.append(
            Examples(f"map{e}", f"map{e}", pictures, maps, masks, modified, ["plain", "max(3)"], drops, [], [])
        )
    return found


def test_everything_is_there_when_it_fits() -> None:
    found = examples(channels=1)
    result = explorer(found, imputes=True)
    assert result is not None and result.left_out == ""
    data = json.loads(json.dumps(result.data))
    assert len(data["images"]) == 3 and [(m["estimator"], m["k"]) for m in data["maps"]] == [
        (f"map{e}", k) for e in range(2) for k in ("plain", "max(3)")
    ]
    assert data["imputedRates"] == [0.1, 0.3, 0.5] and len(data["maps"][0]["imputed"][2]) == 3
    assert np.array_equal(unpack(data["images"][1]["pixels"]).reshape(12, 12, 3)[..., 0], found[0].images[1, ..., 0])
    fill = unpack(data["images"][1]["fill"]).reshape(12, 12, 3)
    assert (fill[found[1].masks[1, -1, 1]] == 99).all()
    assert explorer(found, imputes=False).data["imputedRates"] == []  # type: ignore[union-attr]
    assert explorer([], imputes=True) is None


def test_imputed_pictures_are_those_of_the_kernel() -> None:
    from io import BytesIO

    from PIL import Image

    found = examples()
    data = explorer(found, imputes=True).data  # type: ignore[union-attr]
    address = data["maps"][3]["imputed"][1][2]
    picture = np.asarray(Image.open(BytesIO(base64.b64decode(address.split(",", 1)[1]))))
    expected = rf.impute_linear(found[1].images[1], found[1].masks[1, 2, 1], noise=0.0, layout="NHWC")
    assert np.array_equal(picture, np.rint(expected))


def test_a_small_budget_leaves_out_images_first_and_says_so() -> None:
    found = examples(images=4)
    whole = explorer(found, imputes=False)
    assert whole is not None
    less = explorer(found, imputes=False, most_bytes=whole.size // 2)
    assert less is not None and 1 <= len(less.data["images"]) < 4 and less.size <= whole.size // 2
    assert f"Only {len(less.data['images'])} of 4 stored images" in less.left_out
    tiny = explorer(found, imputes=False, most_bytes=whole.size // 12)
    assert tiny is not None and len(tiny.data["images"]) == 1 and 1 <= len(tiny.data["maps"]) < 4
    assert "of 4 maps" in tiny.left_out and all(len(m["codes"]) == 1 for m in tiny.data["maps"])


def test_masks_that_are_not_nested_are_kept_as_they_are() -> None:
    (one,) = examples(estimators=1)
    masks = np.stack([[rf.block_random((3, 12, 12), t, seed=round(10 * t)) for t in one.drops]] * 2).astype(bool)
    block = Examples("block", "block", one.images, one.processed, masks, one.modified, ["plain"], one.drops, [], [])
    data = explorer([block], imputes=False).data  # type: ignore[union-attr]
    assert data["maps"][0]["nested"] is False
    assert np.array_equal(unpack(data["maps"][0]["codes"][1]).reshape(3, 12, 12), masks[0, :, 1])


@pytest.mark.slow
def test_thirty_estimators_at_224_pixels_stay_below_15_megabytes(tmp_path: Path) -> None:
    names = [f"map{i}" for i in range(30)]
    synthetic.MASK_TV.update({name: 0.1 + 0.01 * i for i, name in enumerate(names)})
    synthetic.write_examples(tmp_path, names, size=224, images=6)
    results = synthetic.study(estimators=names, trials=2, protocols=[("roar", "morf"), ("road", "morf")])
    page = build(tmp_path, results=results)
    assert page.stat().st_size < 15e6
    assert "of 6 stored images" in page.read_text()


PROBE = """<script>
window.addEventListener("error", function (e) { document.documentElement.setAttribute("data-error", e.message); });
window.addEventListener("load", async function () {
  function element(name) { return document.getElementById("explorer-" + name); }
  function choose(name, value) { element(name).value = value; element(name).dispatchEvent(new Event("change")); }
  async function ready() { while (document.getElementById("explorer").dataset.ready !== "yes") await new Promise(function (r) { setTimeout(r, 20); }); }
  function seen(name) {
    var canvas = element(name), found = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, text = "";
    for (var i = 0; i < found.length; i += 4) text += String.fromCharCode(256 + found[i]);
    return Array.from(text).map(function (c) { return (c.charCodeAt(0) - 256).toString(16).padStart(2, "0"); }).join("");
  }
  await ready();
  var wanted = WANTED, found = [];
  choose("estimator", "ig²"); choose("k", "gaussian(1)"); choose("image", element("image").options[1].value);
  for (var i = 0; i < wanted.length; i++) {
    element("slider").value = wanted[i];
    element("slider").dispatchEvent(new Event("input"));
    await ready();
    found.push({ rate: element("rate").textContent, mask: seen("mask"), modified: seen("modified"), status: element("status").textContent });
  }
  var out = document.createElement("pre"); out.id = "found"; out.textContent = JSON.stringify(found); document.body.appendChild(out);
});
</script>"""


@pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)
def test_the_browser_draws_what_the_store_holds(tmp_path: Path) -> None:
    """The slider is moved to three measured rates; every pixel of mask and modified image is that of the store."""
    synthetic.write_examples(tmp_path, ("grad", "ig^2"), size=16)
    results = synthetic.study(estimators=("grad", "ig^2"), trials=1, drops=(0.1, 0.3, 0.5), baselines=())
    text = build(tmp_path, results=results).read_text()
    data = json.loads(re.search(r'id="explorer-data">(.*?)</script>', text, re.DOTALL).group(1))  # type: ignore[union-attr]
    steps = [data["rates"].index(t) + 1 for t in (0.1, 0.3, 0.5)]
    page = tmp_path / "probe.html"
    page.write_text(text.replace("<head>", "<head>" + PROBE.replace("WANTED", str(steps)), 1))
    dom = dump(page, tmp_path / "profile")
    assert "data-error" not in re.search(r"<html[^>]*>", dom).group()  # type: ignore[union-attr]
    found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL).group(1))  # type: ignore[union-attr]
    (_, stored) = stored_examples(RunFolder(tmp_path), ("grad", "ig^2"))
    for d, one in enumerate(found):
        mask = stored.masks[stored.postprocesses.index("gaussian(1)"), d, 1]
        drawn = np.frombuffer(bytes.fromhex(one["mask"]), np.uint8).reshape(16, 16)
        assert one["rate"] == f"{stored.drops[d]:.2f}"
        assert np.array_equal(drawn == 40, mask) and set(np.unique(drawn)) == {40, 235}
        modified = np.frombuffer(bytes.fromhex(one["modified"]), np.uint8).reshape(16, 16)
        assert np.array_equal(modified, stored.modified[stored.postprocesses.index("gaussian(1)"), d, 1, ..., 0])
        assert f"{int(mask.sum())} of 256 pixels removed" in one["status"]

# SPDX-License-Identifier: BSD-2-Clause
"""index.html as a person uses it, in headless Chromium."""

import re

import pytest

from . import page, screenshot, webdriver
from .conftest import make_cell, make_results, many_cells, spoil

needs_browser = pytest.mark.skipif(
    bool(webdriver.missing()),
    reason=f"no {webdriver.missing()}: apt-get install {webdriver.PACKAGES}",
)

# Drawn fields only; `many` draws what stands outside the window, too.
SHOWN_FIELDS = "return document.querySelectorAll('.field').length"
COUNT = "return document.querySelector('.count').value"
FOCUS = (
    "const at = document.activeElement;"
    "return at.getAttribute('aria-label') || at.dataset.cell || ''"
)


@pytest.fixture(scope="module")
def browser():
    with webdriver.open_browser() as window:
        yield window


@pytest.fixture
def opened(browser, small, tmp_path):
    """The page of `small`, and afterwards: nothing was fetched, nothing went wrong."""
    path = tmp_path / "index.html"
    path.write_text(page.render(small), encoding="utf-8")
    browser.console(), browser.requested()  # of the test before
    browser.url = path.as_uri()
    browser.go("about:blank")  # the same address with another fragment would not load again
    browser.go(browser.url)
    yield browser
    assert browser.console() == []
    # chrome… and data: belong to the browser's own first page, or need nobody.
    asked = [
        url for url in browser.requested() if not url.startswith(("chrome", "data:", "about:"))
    ]
    assert {url.split("#")[0] for url in asked} == {browser.url}


def choose(browser, name, value):
    browser.script(
        "const control = document.querySelector(`.filters [name=${arguments[0]}]`);"
        "control.value = arguments[1];"
        "control.dispatchEvent(new Event('input', {bubbles: true}))",
        name,
        value,
    )


def count_is(browser, text):
    browser.wait(f"return document.querySelector('.count').value.replace(/\\s/g, ' ') === {text!r}")


def cell_id(browser):
    return browser.text("tr.open .id a")


def test_the_page_needs_nothing_beside_itself(small):
    text = page.render(small)
    assert re.findall(r'(?:src|href)="(?!#|data:)([^"]+)"', text) == []
    assert "@import" not in text and not re.search(r"url\((?!#|data:)", text)
    assert "default-src 'none'" in text


def test_text_of_programs_cannot_end_the_script(small):
    data = (
        page.render(small)
        .split('<script type="application/json" id="data">')[1]
        .split("</script>")[0]
    )
    assert "onerror" in data and "<" not in data


def _banner(results):
    """The class and the words of the page's first lines."""
    kind, text = re.search(
        r'<section class="banner (\w+)"[^>]*>(.*?)</section>', page.render(results), re.S
    ).groups()
    return kind, " ".join(re.sub(r"<[^>]*>", " ", text).split())


@pytest.mark.parametrize(
    "gate, builds, kind, told",
    [
        (None, [], "good", "All 2 cells are as expected"),
        ("pass", [], "good", "Yes, b may replace a All 2 cells are as expected"),
        ("fail", [], "bad", "No, b may not replace a All 2 cells are as expected"),
        ("not_run", [], "open", "Whether b may replace a was not seen"),
        (None, ["expected"], "good", "All 2 cells are as expected"),
        (None, ["expected", "unexpected"], "bad", "1 of 2 builds is not as expected"),
    ],
)
def test_the_first_lines_say_what_the_exit_status_does(gate, builds, kind, told):
    results = make_results(
        [make_cell("a", "debian-6.1.192", "rxe"), make_cell("b", "debian-6.1.192", "rxe")],
        gate=gate and {"old": "a", "new": "b", "result": gate},
        builds=[
            {"source": "s", "headers": "h", "library": "l", "result": "built", "verdict": verdict}
            for verdict in builds
        ],
    )
    shown, words = _banner(results)
    assert shown == kind and told in words


@needs_browser
def test_the_front_page_counts_and_shows_every_provider_and_kernel(opened):
    assert "No, deb-65.0 may not replace deb-44.0: 1 cell got worse" in opened.text(".banner .big")
    assert "3 of 192 cells are not as expected" in opened.text(".banner")
    assert opened.text(".tile.t-unexpected b") == "3"
    assert opened.script(
        "return [...document.querySelectorAll('.block h3')].map((h) => h.firstChild.data)"
    ) == ["mlx5", "rxe"]
    assert opened.script(
        "const rows = document.querySelectorAll('.block:first-child tbody th');"
        "return [...rows].map((h) => h.firstChild.data)"
    ) == ["linux-4.16", "debian-6.1.192", "gvisor-rdmaproxy"]
    assert opened.script(SHOWN_FIELDS) == 12
    assert opened.text("#agreement tbody, #agreement table").count("99.6 %") == 1
    for section in ("gate", "builds", "bench", "provenance"):
        assert opened.count(f"#{section}") == 1
    # Colour is never alone: each field has its outcome as a word.
    words = opened.script(
        "return [...document.querySelectorAll('.field .name')].map((name) => name.textContent)"
    )
    classes = opened.script(
        "return [...document.querySelectorAll('.field')].map((field) => field.classList[1])"
    )
    assert classes == ["o-" + word.replace(" ", "-") for word in words]
    assert sorted(set(words)) == ["broken", "degraded", "full", "not run", "refused", "unmodelled"]


@needs_browser
def test_filters_narrow_the_matrix_and_reset(opened):
    count_is(opened, "192 cells")
    choose(opened, "kernel", "linux-4.16")
    count_is(opened, "64 of 192 cells")
    assert opened.script(SHOWN_FIELDS) == 4
    choose(opened, "provider", "rxe")
    count_is(opened, "32 of 192 cells")
    choose(opened, "userland", "deb-65.0")
    count_is(opened, "16 of 192 cells")
    assert (
        opened.script("return location.hash") == "#kernel=linux-4.16&userland=deb-65.0&provider=rxe"
    )
    opened.click(".filters button[type=reset]")
    count_is(opened, "192 cells")
    choose(opened, "verdict", "unexpected")
    count_is(opened, "3 of 192 cells")
    choose(opened, "outcome", "broken")
    count_is(opened, "1 of 192 cells")
    opened.click(".filters button[type=reset]")
    choose(opened, "rule", "mlx5.ucontext.flags")
    count_is(opened, "1 of 192 cells")
    opened.click(".filters button[type=reset]")
    count_is(opened, "192 cells")
    opened.type(".filters [name=text]", "no-ioctl ")
    count_is(opened, "12 of 192 cells")
    opened.type(".filters [name=text]", "refused")  # the space before it is still there
    count_is(opened, "4 of 192 cells")
    opened.type(".filters [name=text]", " nowhere")
    count_is(opened, "0 of 192 cells")
    opened.click("[data-reset]")
    count_is(opened, "192 cells")


@needs_browser
def test_a_cell_tells_why_and_how_to_reproduce_it(opened, small):
    opened.click(".field[aria-label^='deb-65.0 on linux-4.16, mlx5']")
    wanted = next(cell for cell in small["cells"] if cell["id"] == "deb-65.0/linux-4.16/mlx5")
    assert cell_id(opened) == wanted["id"]
    assert opened.text(".exec-line") == wanted["exec"]
    assert opened.count(".variants button") == 16
    told = opened.text("tr.open .cell")
    for words in (
        "refused",
        "unexpected",
        "EINVAL from kernel, rule mlx5.ucontext.flags",
        wanted["message"],
        "core: source (read in the kernel's source)",
        "6 tests: 6 passed",
    ):
        assert words in told
    assert opened.script("return document.title").startswith(
        "verbs-abi: 3 unexpected"
    )  # the message is no HTML
    # One of its variants.
    opened.click("[data-cell='deb-65.0/linux-4.16/mlx5/no-ioctl']")
    assert cell_id(opened) == "deb-65.0/linux-4.16/mlx5/no-ioctl"
    assert "--overlay no-ioctl" in opened.text(".exec-line")
    assert "dynamic UAR" in opened.text("tr.open .cell dl")
    assert opened.script("return location.hash") == "#cell=deb-65.0/linux-4.16/mlx5/no-ioctl"
    opened.click("tr.open .close")
    assert opened.count("tr.open") == 0


@needs_browser
def test_the_copy_button_copies_the_exec_line(opened):
    opened.click(".field[aria-label^='deb-44.0 on debian-6.1.192, rxe']")
    line = opened.text(".exec-line")
    assert line.startswith(
        "./verbs-abi exec --userland deb-44.0 --kernel debian-6.1.192 --provider rxe -- "
    )
    opened.click(".copy-exec")
    opened.wait("return document.querySelector('.copy-exec').textContent === 'Copied'")
    opened.click(".filters [name=text]")
    opened.keys("Ctrl+v")
    opened.wait("return document.querySelector('.filters [name=text]').value !== ''")
    assert opened.script("return document.querySelector('.filters [name=text]').value") == line


@needs_browser
def test_failed_tests_of_a_cell_are_open_and_first(opened, small):
    bad = next(cell for cell in small["cells"] if cell["outcome"] == "broken")
    opened.go(f"{opened.url}#cell={bad['id']}")
    opened.wait("return document.querySelector('.tests')")
    assert opened.script("return document.querySelector('.test-list').open")
    assert opened.text(".tests li") == "failedDataPath.WriteArrivesexpected 0x40, got 0x3f <b>"


@needs_browser
def test_a_link_to_a_cell_opens_it_on_load_and_later(opened, browser):
    browser.go("about:blank")
    opened.go(opened.url + "#cell=deb-44.0/linux-4.16/rxe/errno@GET_CONTEXT=EINVAL")
    opened.wait("return document.querySelector('tr.open')")
    assert cell_id(opened) == "deb-44.0/linux-4.16/rxe/errno@GET_CONTEXT=EINVAL"
    opened.script("location.hash = '#cell=deb-65.0/linux-4.16/mlx5&outcome=refused'")
    opened.wait(
        "return document.querySelector('tr.open .id a')?.textContent === 'deb-65.0/linux-4.16/mlx5'"
    )
    assert (
        opened.script("return document.querySelector('.filters [name=outcome]').value") == "refused"
    )
    opened.script("location.hash = '#cell=no/such/cell'")
    opened.script("location.hash = '#kernel=linux-0.1'")
    count_is(opened, "192 cells")
    assert (
        opened.script("return document.querySelector('.filters [name=kernel]').selectedIndex") == 0
    )


@needs_browser
def test_everything_works_from_the_keyboard(opened):
    opened.script("document.querySelector('.field').focus()")
    opened.keys("Right")
    assert opened.script(FOCUS).startswith("deb-65.0 on linux-4.16, mlx5")
    opened.keys("Down", "Left")
    assert opened.script(FOCUS).startswith("deb-44.0 on debian-6.1.192, mlx5")
    opened.keys("Left", "Left")  # at the edge it stays
    assert opened.script(FOCUS).startswith("deb-44.0 on debian-6.1.192, mlx5")
    opened.keys("Enter")
    assert cell_id(opened) == "deb-44.0/debian-6.1.192/mlx5"
    opened.keys("Tab", "Down")
    assert cell_id(opened).startswith("deb-44.0/debian-6.1.192/mlx5/")
    assert opened.script(FOCUS) == cell_id(opened)
    opened.keys("Escape")
    assert opened.count("tr.open") == 0
    assert opened.script(FOCUS).startswith("deb-44.0 on debian-6.1.192, mlx5")
    opened.keys("/")
    assert opened.script("return document.activeElement.name") == "text"
    assert opened.script("return document.activeElement.value") == ""


@needs_browser
def test_tiles_filter_and_the_attention_list_leads_to_cells(opened):
    opened.click(".tile.t-unexpected")
    count_is(opened, "3 of 192 cells")
    opened.click(".tile.t-unexpected")
    count_is(opened, "192 cells")
    first = opened.text(".attention a")
    opened.click(".attention a")
    opened.wait("return document.querySelector('tr.open')")
    assert cell_id(opened) == first


@needs_browser
def test_thousands_of_cells_are_drawn_where_one_looks(browser, tmp_path):
    cells = many_cells(providers=[f"provider{number:02}" for number in range(4)])
    spoil(cells)
    assert len(cells) >= 5000
    path = tmp_path / "index.html"
    path.write_text(page.render(make_results(cells)), encoding="utf-8")
    assert path.stat().st_size < 3_000_000
    browser.console()
    browser.go(path.as_uri())
    browser.wait("return document.querySelectorAll('.field').length > 0")
    drawn = browser.script(SHOWN_FIELDS)
    assert 0 < drawn < 4 * 21 * 4  # the blocks below wait
    last = cells[-1]["id"]
    browser.script("location.hash = '#cell=' + arguments[0]", last)
    browser.wait("return document.querySelector('tr.open')")
    assert cell_id(browser) == last
    browser.script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.script(SHOWN_FIELDS) == 4 * 21 * 4
    choose(browser, "verdict", "unexpected")
    count_is(browser, f"3 of {len(cells):,} cells".replace(",", " "))
    assert browser.console() == []


@needs_browser
def test_an_empty_run_is_said_plainly(browser, tmp_path):
    path = tmp_path / "index.html"
    path.write_text(page.render(make_results([])), encoding="utf-8")
    browser.console()
    browser.go(path.as_uri())
    assert "No cell was run" in browser.text(".banner .big")
    count_is(browser, "0 cells")
    assert browser.console() == []


@needs_browser
def test_the_picture_is_as_wide_as_asked(tmp_path, small):
    (tmp_path / "index.html").write_text(page.render(small), encoding="utf-8")
    picture = tmp_path / "docs" / "matrix.png"
    assert (
        screenshot.main(
            [str(tmp_path / "index.html"), str(picture), "--width", "1400", "--max-height", "900"]
        )
        == 0
    )
    header = picture.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")) == (
        1400,
        900,
    )


def test_a_picture_of_no_page_says_what_writes_it(tmp_path, capsys):
    assert screenshot.main([str(tmp_path / "index.html"), str(tmp_path / "x.png")]) == 2
    assert "./verbs-abi run writes it" in capsys.readouterr().err
    assert not (tmp_path / "x.png").exists()

"""The viewer in a real browser: what people see and do."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from synthetic_returns.viewer.state_bars import StateBars
from synthetic_returns.viewer.viewer import write_view
from tests.viewer.browser import Visit, open_browser
from tests.viewer.made_up import made_up, one_of_each_kind
from tests.viewer.test_page import NASTY


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    episodes = [made_up(), made_up(key_at=3, total=4.0, steps=20)]
    bars = StateBars(("-1", "0", "+1"), np.array([-0.1, 0.0, 0.9]), 2)
    return write_view(tmp_path_factory.mktemp("page") / "view.html", episodes, bars=bars)


@pytest.fixture
def visit(browser, page):
    with Visit(browser, page) as visit:
        visit.tab.wait_for_selector("#frame[data-step='0']")
        yield visit
        assert visit.said == []
        assert visit.fetched == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_loads_in_silence_and_fits(browser, page, width, scheme, tmp_path):
    with Visit(browser, page, width=width, scheme=scheme) as visit:
        visit.tab.wait_for_selector("#frame[data-step='0']")
        visit.tab.screenshot(path=tmp_path / "page.png", full_page=True)
        assert visit.tab.evaluate("document.documentElement.scrollWidth") <= width
        ground = visit.tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        brightness = sum(int(x) for x in ground.strip("rgb()").split(","))
        assert (brightness > 600) == (scheme == "light")
        assert visit.said == []
        assert visit.fetched == []


def test_play_advances_the_frames_and_pause_stops(visit):
    visit.tab.select_option("#speed", "25")
    visit.tab.click("#play")
    visit.wait_until_step(3)
    assert visit.tab.get_attribute("#play", "aria-label") == "Pause"
    visit.tab.click("#play")
    step = visit.step()
    visit.tab.wait_for_timeout(150)
    assert visit.step() == step
    assert visit.red_of_frame() == step  # frame t has the colour t


def test_a_click_on_the_trace_moves_to_that_frame(visit):
    charts = visit.tab.locator("#charts svg[aria-label^='Credit']")
    box = charts.bounding_box()
    left, right = 46, 8  # the margins of the charts
    at = box["x"] + left + (box["width"] - left - right) * (12 + 0.5) / 31
    visit.tab.mouse.move(at, box["y"] + 60)
    assert visit.step() == 12  # pointing is looking
    visit.tab.mouse.move(box["x"] + 200, box["y"] - 400)
    assert visit.step() == 0
    visit.tab.mouse.click(at, box["y"] + 60)
    visit.tab.mouse.move(box["x"] + 200, box["y"] - 400)
    assert visit.step() == 12  # clicking is staying
    assert visit.red_of_frame() == 12


def test_the_keyboard_does_everything(visit):
    press = visit.tab.keyboard.press
    press("ArrowRight")
    press("ArrowRight")
    press("ArrowLeft")
    assert visit.step() == 1
    press("Shift+ArrowRight")
    assert visit.step() == 11
    press("End")
    assert visit.step() == 30
    press("Home")
    press("e")
    assert visit.step() == 4  # the first apple
    press("e")
    assert visit.step() == 7  # the key
    press(" ")
    visit.wait_until_step(9)
    press(" ")
    press("n")
    assert (
        visit.tab.locator("#episodes button[aria-current='true']")
        .inner_text()
        .startswith("return 4")
    )
    press("p")
    assert visit.step() == 0
    visit.tab.focus("#scrub")
    press("ArrowRight")
    assert visit.step() == 1  # the slider moves by one, not by two


def test_every_step_shows_its_own_frame(visit):
    for step in range(31):
        assert (visit.step(), visit.red_of_frame()) == (step, step)  # frame t has the colour t
        visit.tab.keyboard.press("ArrowRight")


def test_everything_can_be_reached_by_tab(visit):
    reached = set()
    for _ in range(20):
        visit.tab.keyboard.press("Tab")
        reached.add(visit.tab.evaluate("document.activeElement.id"))
    assert {"first", "back", "play", "forward", "last", "speed", "scrub"} <= reached


def test_marked_events_are_where_the_data_has_them(visit):
    data = visit.tab.evaluate("JSON.parse(document.getElementById('data').textContent)")
    wanted = data["episodes"][0]["events"]
    assert wanted["key"] == [7]
    marks = visit.tab.locator("#charts [data-event='key']")
    assert [mark.get_attribute("data-step") for mark in marks.all()] == ["7"]
    # And drawn in the band of that step.
    box, chart = marks.first.bounding_box(), marks.first.locator("..").bounding_box()
    middle = box["x"] + box["width"] / 2 - chart["x"]
    assert int((middle - 46) / ((chart["width"] - 54) / 31)) == 7
    apples = visit.tab.locator("#charts [data-event='apple']").all()
    assert [int(mark.get_attribute("data-step")) for mark in apples] == wanted["apple"]
    visit.tab.click("#happenings button[data-event='key']")
    assert visit.step() == 7
    assert "key" in visit.tab.inner_text("#caption")
    assert "1.5" in visit.tab.inner_text("#values")


def test_the_other_episode_has_its_own_traces(visit):
    visit.tab.click("#episodes li:nth-child(2) button")
    visit.tab.keyboard.press("End")
    assert visit.step() == 20
    marks = visit.tab.locator("#charts [data-event='key']")
    assert marks.first.get_attribute("data-step") == "3"


def test_all_episodes_share_one_scale_and_a_sentence_says_what_credit_means(browser, tmp_path):
    small = made_up(terms={"c": np.full(31, -0.25)}, player="random play")
    page = write_view(tmp_path / "view.html", [made_up(), small])
    with Visit(browser, page) as visit:
        chart = visit.tab.locator("#charts svg[aria-label^='Credit']")
        first = chart.locator("text").all_text_contents()
        assert "1.5" in first
        assert "\N{MINUS SIGN}0.25" in first
        visit.tab.keyboard.press("n")
        assert chart.locator("text").all_text_contents() == first
        assert "random play" in visit.tab.inner_text("#episodes li:nth-child(2)")
        assert "a key earns" in visit.tab.inner_text("#meaning")
        assert visit.said == []


def test_a_bar_for_every_state(visit):
    assert visit.tab.locator("#bars rect.bar").count() == 3
    label = visit.tab.get_attribute("#bars svg", "aria-label")
    assert "+1: 0.9" in label


def test_text_from_outside_stays_text(browser, tmp_path):
    nasty = made_up(events={NASTY: np.arange(31) == 5}, phases=((NASTY, 0),))
    page = write_view(
        tmp_path / "view.html", [nasty], title=NASTY, facts={NASTY: NASTY}, meanings={NASTY: NASTY}
    )
    with Visit(browser, page) as visit:
        visit.tab.wait_for_selector("#frame[data-step='0']")
        assert visit.tab.inner_text("#title").startswith("</script><script>alert(1)")
        assert visit.tab.locator("img").count() == 0
        assert visit.said == []
        assert visit.fetched == []


def test_rewards_and_credit_alone_are_enough(browser, tmp_path):
    credit = made_up().terms["c"]
    bare = made_up(frames=None, terms={"c": credit}, events={}, phases=())
    page = write_view(tmp_path / "view.html", [bare])
    with Visit(browser, page) as visit:
        assert visit.tab.is_visible("#no-frames")
        assert visit.tab.locator("#charts svg").count() >= 3
        assert visit.said == []


def test_without_credit_it_says_so(browser, tmp_path):
    plain = made_up(terms={})
    with Visit(browser, write_view(tmp_path / "view.html", [plain])) as visit:
        visit.tab.wait_for_selector("#frame[data-step='0']")
        assert "learned without credit" in visit.tab.inner_text("#charts")
        assert visit.tab.locator("#charts svg[aria-label^='Lines']").count() == 1  # the reward
        visit.tab.keyboard.press("ArrowRight")
        assert visit.step() == 1
        assert visit.said == []


@pytest.mark.parametrize("credit", ["worth", "choice", "links"])
def test_terms_of_every_kind_are_drawn(browser, tmp_path, credit):
    terms = one_of_each_kind(31)
    page = write_view(tmp_path / "view.html", [made_up(terms=terms, credit=credit)])
    with Visit(browser, page) as visit:
        visit.tab.wait_for_selector("#frame[data-step='0']")
        titles = visit.tab.locator("#charts .panel-title").all_inner_texts()
        for term in terms.values():
            assert sum(term.label in title for title in titles) == 1, term.label
        heading = visit.tab.locator(".panel-title", has_text="guess of the reward")
        assert heading.locator(".swatch").count() == 2  # the reward and the line
        for kind, rows in (("Actions", 3), ("Pairs", 31)):
            chart = visit.tab.locator(f"#charts svg[aria-label^='{kind}']")
            source = chart.locator("image.heat").get_attribute("href")
            assert heat_rows(source) == rows
        row = visit.tab.locator("#charts rect.row")
        visit.tab.keyboard.press("End")
        assert float(row.get_attribute("y")) == pytest.approx(220 * 30 / 31)  # the last row
        assert "guess of the reward" in visit.tab.inner_text("#values")
        assert visit.said == []
        assert visit.fetched == []


def heat_rows(source: str) -> int:
    with Image.open(io.BytesIO(base64.b64decode(source.split(",", 1)[1]))) as image:
        return image.height


def test_no_episode_no_page(tmp_path):
    with pytest.raises(ValueError, match="no episode to show"):
        write_view(tmp_path / "view.html", [])

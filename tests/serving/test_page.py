"""The page in a real headless Chromium: typing, building, reading, and a server that goes away.

With CONEKG_SCREENSHOTS=1 the same tests write the picture of the documentation; name a
trained run by CONEKG_RUN then, so that the answers in it make sense.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path

from extras import need

need("fastapi", "uvicorn", "playwright")

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import expect, sync_playwright

from conekg.query.iri import name_of_iri
from conekg.serving.limits import Limits
from conekg.serving.schemas import Example
from untrained_answerer import untrained_answerer

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "page-desk-light.png"
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


def find_chromium() -> str | None:
    """The path of a Chromium, from the environment or the usual names."""
    named = os.environ.get("CONEKG_CHROMIUM")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return named or next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="module")
def browser():
    path = find_chromium()
    if path is None:
        message = "no Chromium found; install one or set CONEKG_CHROMIUM to its path"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser, served):
    """Opens the page; in the end there must be no console errors and no requests elsewhere."""
    contexts, complaints = [], []

    def open_at(url=None, *, viewport=DESK, scheme="light", allow=()):
        context = browser.new_context(
            viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
        )
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                complaints.append(message.text)
                if message.type in ("error", "warning")
                and not any(word in message.text for word in ("Failed to load resource", *allow))
                else None
            ),
        )
        base = url or served.url
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(base) else complaints.append(request.url)
            ),
        )
        page.goto(f"{base}/")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []


def take_picture(page) -> None:
    """Write the picture of the documentation, if it is wanted."""
    if os.environ.get("CONEKG_SCREENSHOTS") == "1":
        page.mouse.move(0, 0)  # what the pointer lies on looks chosen
        page.screenshot(path=PICTURE, full_page=True)


def ask(page, text: str) -> None:
    """Ask a question, and wait for its reading and its answers."""
    page.get_by_label("Ask the graph").fill(text)
    with page.expect_response("**/api/parse"):
        page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("ck-answers")).not_to_have_class(re.compile("is-waiting"))
    expect(page.locator(".answer")).not_to_have_count(0)


def wait_until(page, condition) -> None:
    """Wait until a condition holds, while the page keeps running.

    Asked again and again from here: the page's policy forbids scripts that are made of text, which
    is how the browser would be made to wait.
    """
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        page.wait_for_timeout(20)


def wait_until_held(page) -> None:
    """Wait until the `fetch` of `hold` holds a request back."""
    wait_until(page, lambda: page.evaluate("window.held.length") == 1)


def type_and_act(page, *texts: str, then: str) -> None:
    """Type each text and run `then` in one task, before the page parses the typed text."""
    page.evaluate(
        f"""async (texts) => {{
          const field = document.querySelector("#question");
          for (const text of texts) {{
            field.value = text;
            field.dispatchEvent(new Event("input"));
          }}
          await {then};
        }}""",
        texts,
    )


def clicking(selector: str) -> str:
    return f'document.querySelector("{selector}").click()'


def test_a_question_is_answered_and_an_answer_explained(open_page):
    page = open_page()
    expect(page.locator("#source")).to_contain_text("geography")
    ask(page, "France.borders.capital")
    expect(page.locator(".words")).to_contain_text("France")
    expect(page.locator(".answer")).to_have_count(10)
    expect(page.locator("ck-builder .diagram .node")).to_have_count(4)
    assert "q=France.borders.capital" in page.url

    page.get_by_text("known", exact=True).first.click()
    expect(page.locator(".answer.is-predicted")).to_have_count(0)
    bern = page.get_by_role("button", name=re.compile("Bern .*known"))
    bern.click()
    expect(bern).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#explanation-title")).to_have_text("Why Bern")
    expect(page.locator("ck-explanation .verdict")).to_contain_text("facts alone")
    labels = page.locator("ck-explanation .node-label").all_text_contents()
    assert labels == ["France", "Switzerland", "Bern"]
    expect(page.locator("ck-explanation .edge-fact")).to_have_count(2)
    expect(page.locator("ck-cones svg")).to_have_count(8)
    verdict = page.locator("ck-cones .verdict")
    expect(verdict).to_contain_text("Bern lies inside")
    inside, dimensions = map(int, re.search(r"(\d+) of (\d+)", verdict.text_content()).groups())
    expect(verdict).to_contain_text("enough" if inside >= 5 / 8 * dimensions else "too few")


@pytest.fixture
def behind_a_proxy(browser, served):
    """A page that reaches the server only below /kg/, and the addresses that it requested."""
    page = browser.new_page()
    page.set_default_timeout(20_000)
    passed_on = []

    def pass_on(route):
        inner = route.request.url.replace("/kg/", "/", 1)
        passed_on.append(inner)
        route.fulfill(response=route.fetch(url=inner))

    page.route("**/*", lambda route: route.abort())
    page.route("**/kg/**", pass_on)
    yield page, passed_on
    page.unroute_all(behavior="ignoreErrors")  # a picture may still be on its way
    page.close()


def test_the_page_works_behind_a_path_of_a_proxy(behind_a_proxy, served):
    page, passed_on = behind_a_proxy
    page.goto(f"{served.url}/kg/")
    ask(page, "France.borders")
    assert f"{served.url}/api/ask" in passed_on
    assert page.get_by_role("link", name="HTTP API").evaluate("link => link.pathname") == "/kg/docs"


def test_the_api_can_be_tried_behind_a_path_of_a_proxy(behind_a_proxy, served):
    page, passed_on = behind_a_proxy
    page.goto(f"{served.url}/kg/docs")
    page.get_by_text("/health").first.click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute", exact=True).click()
    expect(page.locator(".request-url")).to_contain_text(f"{served.url}/kg/health")
    expect(page.locator(".live-responses-table .response-col_status").last).to_have_text("200")
    assert f"{served.url}/health" in passed_on
    page.goto(f"{served.url}/kg/redoc")
    expect(page.get_by_text("Ranked answers of a query").first).to_be_visible()


def test_the_empty_field_shows_a_question_of_this_graph(open_page, served):
    page = open_page()
    (first, *_) = served.get("/api/about").json()["examples"]
    field = page.get_by_label("Ask the graph")
    expect(field).to_have_attribute("placeholder", first["query"])


def test_facts_against_an_answer_are_said_first(open_page):
    """Answers that facts rule out are not listed, so the page is made to ask about one."""
    page = open_page()

    def ask_about_luxembourg(route):
        asked = route.request.post_data_json
        route.continue_(post_data=json.dumps({**asked, "answer": "Luxembourg"}))

    page.route("**/api/explain", ask_about_luxembourg)
    ask(page, "France.borders & !Germany.borders")
    page.locator(".answer button").first.click()
    verdict = page.locator("ck-explanation .verdict")
    expect(verdict).to_have_text("The graph’s facts speak against Luxembourg.")
    expect(page.locator("ck-explanation")).to_contain_text("contradicted")


@pytest.mark.parametrize(
    ("kinds", "weakest", "marked"),
    [
        (("guess", "guess", "fact"), 1, [1]),
        (("guess", "contradicted", "absent"), 1, [1]),
        (("guess", "fact", "absent"), 2, [2]),
        (("fact", "fact", "absent"), 2, []),
    ],
)
def test_exactly_one_weakest_step_is_marked(open_page, kinds, weakest, marked):
    """The same part of a question may be met twice, through entities of different scores."""
    entity = {"name": "Cuba", "label": "Cuba"}
    parts = [
        {"query": "Cuba.borders", "reading": "things", "kind": kind, "score": -1.5 - place}
        for place, kind in enumerate(kinds)
    ]
    witness = {
        "answer": entity,
        "edges": [],
        "parts": parts,
        "weakest": parts[weakest],
        "facts_only": not marked,
    }
    page = open_page()
    ask(page, "France.borders")
    page.route(
        "**/api/explain",
        lambda route: route.fulfill(json={"variables": [], "witnesses": [witness]}),
    )
    page.locator(".answer button").first.click()
    steps = page.locator("ck-explanation .step")
    expect(steps).to_have_count(3)
    has_mark = [each.locator(".weakest").count() for each in steps.all()]
    assert [place for place, count in enumerate(has_mark) if count] == marked


def test_known_and_predicted_differ_by_word_icon_and_border(open_page):
    page = open_page()
    ask(page, "France.borders")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".answer")).to_have_count(30)
    predicted = page.locator(".badge-predicted").first
    expect(predicted).to_have_text("predicted")
    assert predicted.evaluate("e => getComputedStyle(e).borderTopStyle") == "dashed"
    page.get_by_text("known", exact=True).first.click()
    expect(page.locator(".badge-predicted")).to_have_count(0)
    known = page.locator(".badge-known").first
    expect(known).to_have_text("known")
    assert known.evaluate("e => getComputedStyle(e).borderTopStyle") == "solid"
    assert known.locator("path").get_attribute("d") != predicted_sign(page)


def predicted_sign(page) -> str | None:
    page.get_by_text("predicted", exact=True).first.click()
    expect(page.locator(".badge-known")).to_have_count(0)
    return page.locator(".badge-predicted path").first.get_attribute("d")


def test_a_question_with_a_negation_is_built_by_clicking(open_page):
    page = open_page()
    page.get_by_role("button", name="Start from an entity").click()
    pick(page, "Entity", "fran", "France")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_label("Ask the graph")).to_have_value("France")

    page.get_by_role("button", name="hop").click()
    pick(page, "Relation", "bord", "borders")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_label("Ask the graph")).to_have_value("France.borders")

    page.get_by_role("button", name="and", exact=True).click()
    pick(page, "Entity", "eur", "Euro")
    pick(page, "Relation", "^uses", "uses currency")
    page.get_by_label("not: leave these out").check()
    page.get_by_role("button", name="Add").click()
    built = "France.borders & !Euro.^uses_currency"
    expect(page.get_by_label("Ask the graph")).to_have_value(built)
    expect(page.locator(".words")).to_contain_text("France")
    expect(page.locator("ck-builder .tone-not")).to_have_count(1)
    expect(page.locator(".answer")).to_have_count(10)

    page.get_by_role("button", name="not", exact=True).first.click()
    expect(page.locator("ck-builder .tone-not")).to_have_class(re.compile("is-selected"))
    page.locator("[data-tool=not]").click()
    expect(page.get_by_label("Ask the graph")).to_have_value("France.borders & Euro.^uses_currency")
    page.locator("[data-tool=remove]").click()
    expect(page.get_by_label("Ask the graph")).to_have_value("France.borders & Euro")


def pick(page, label: str, typed: str, wanted: str) -> None:
    page.get_by_label(label, exact=True).fill(typed)
    page.get_by_role("option").filter(has_text=re.compile(f"^{wanted}")).first.click()


def test_a_name_typed_in_full_need_not_be_chosen_from_the_list(open_page):
    """An optional relation that is not understood must not be silently left out."""
    page = open_page()
    add = page.get_by_role("button", name="Add")
    entity = page.get_by_label("Entity", exact=True)
    relation = page.get_by_label("Relation", exact=True)
    page.get_by_role("button", name="Start from an entity").click()
    entity.fill("Frnce")
    add.click()
    complaint = "Choose a name from the list."
    expect(entity).to_have_js_property("validationMessage", complaint)
    entity.fill("France")
    add.click()
    expect(page.get_by_label("Ask the graph")).to_have_value("France")

    page.get_by_role("button", name="or", exact=True).click()
    entity.fill("spain")
    relation.fill("bord")
    add.click()
    expect(relation).to_have_js_property("validationMessage", complaint)
    expect(page.get_by_label("Ask the graph")).to_have_value("France")
    relation.fill("borders")
    add.click()
    expect(page.get_by_label("Ask the graph")).to_have_value("France | Spain.borders")


def test_a_relation_chosen_backwards_can_be_edited_and_is_understood_again(open_page):
    page = open_page()
    ask(page, "Paris")
    page.get_by_role("button", name="hop", exact=True).click()
    pick(page, "Relation", "^has", "has capital")
    relation = page.get_by_label("Relation", exact=True)
    expect(relation).to_have_value("← has capital")
    page.keyboard.press("Backspace")
    expect(page.get_by_role("option")).to_have_text(["has capitalbackwards"])
    page.keyboard.type("l")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_label("Ask the graph")).to_have_value("Paris.^capital")


def test_an_unknown_name_shows_the_suggestion_which_corrects_it(open_page):
    page = open_page()
    page.get_by_label("Ask the graph").fill("Germany.borders & Frnce.borders")
    page.get_by_role("button", name="Ask", exact=True).click()
    error = page.locator("#question-error")
    expect(error).to_contain_text("unknown entity 'Frnce'")
    expect(error.locator("mark")).to_have_text("Frnce")
    expect(page.get_by_label("Ask the graph")).to_have_attribute("aria-invalid", "true")
    error.get_by_role("button", name="France").click()
    expect(page.get_by_label("Ask the graph")).to_have_value("Germany.borders & France.borders")
    expect(error).to_be_hidden()
    expect(page.locator("ck-builder .diagram .node")).to_have_count(6)


def test_the_refusal_of_a_question_stays_when_it_is_parsed_later(open_page):
    page = open_page()
    held = []
    page.route("**/api/parse", lambda route: held.append(route))
    relations = ("borders", "capital", "speaks", "uses_currency", "in_region")
    unions = (f"(France.{relation} | Spain.{relation})" for relation in relations)
    page.get_by_label("Ask the graph").fill(" & ".join(unions))
    page.get_by_role("button", name="Ask", exact=True).click()
    error = page.locator("#question-error")
    expect(error).to_contain_text("the query has 32 union-free branches")
    expect(error.locator(".hint")).to_have_text("ask for its parts one at a time")
    held[-1].continue_()
    expect(page.locator(".words")).to_contain_text("capitals of")
    expect(error).to_contain_text("the query has 32 union-free branches")
    page.unroute("**/api/parse")
    ask(page, "France.borders")
    expect(error).to_be_hidden()


def live(element) -> dict:
    """The aria-live settings that apply to an element: its own and its ancestors'."""
    return element.evaluate(
        """(element) => {
          const region = element.closest("[aria-live], [role=alert], [role=status]");
          const role = region?.getAttribute("role") ?? null;
          const polite = { alert: "assertive", status: "polite" }[role];
          return { live: region?.getAttribute("aria-live") ?? polite ?? null,
                   shown: Boolean(region) && getComputedStyle(region).display !== "none" };
        }"""
    )


def test_hints_of_errors_name_no_routes(open_page):
    page = open_page()
    field, error = page.get_by_label("Ask the graph"), page.locator("#question-error")
    field.fill("New Zealand.borders")
    expect(error).to_contain_text('this name needs quotes: "New Zealand"')
    field.fill("borders")
    expect(error).to_contain_text("it is the name of a relation, and here an entity is needed")
    field.fill("Qqqqqqqq.borders")
    expect(error).to_contain_text("a list shows the names that there are")
    assert "GET" not in error.text_content(), "routes are for programs"


def test_the_hint_for_a_formula_of_too_many_alternatives_says_what_to_write(open_page):
    page = open_page()
    unions = (f"(borders(?x, {variable}) | speaks(?x, {variable}))" for variable in "abcdefg")
    formula = f"?x: exists a, b, c, d, e, f, g. {' & '.join(unions)}"
    page.get_by_label("Ask the graph").fill(formula)
    hint = page.locator("#question-error .hint")
    expect(hint).to_contain_text("write '|' where only one variable is meant")


def test_the_reading_of_an_earlier_text_is_faded(open_page):
    page = open_page()
    reading, field = page.locator("ck-reading"), page.get_by_label("Ask the graph")
    field.fill("France.")
    expect(page.locator("#question-error")).not_to_be_empty()
    expect(reading).not_to_have_attribute("inert", "")  # it invites
    field.fill("France.borders")
    expect(reading.locator(".words")).to_contain_text("France")
    expect(reading).to_have_css("opacity", "1")
    field.fill("France.borders & ")
    expect(reading).to_have_attribute("inert", "")
    expect(reading).to_have_css("opacity", "0.45")
    field.fill("France.borders & Spain.borders")
    expect(reading.locator(".words")).to_contain_text("Spain")
    expect(reading).not_to_have_attribute("inert", "")


def test_asking_an_empty_question_focuses_the_field(open_page):
    page = open_page()
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_label("Ask the graph")).to_be_focused()


def test_the_key_explains_the_answers_words_and_numbers(open_page):
    page = open_page()
    expect(page.get_by_text("How to read the answers")).to_be_hidden()
    ask(page, "Germany.borders & !German.^speaks")
    page.get_by_text("How to read the answers").click()
    signs = page.locator(".key dt")
    shown = page.locator(".summary").text_content()
    assert set(signs.all_text_contents()) >= {"known", "predicted", "order"}
    for word in ("ruled out", "if any is missing"):
        assert (word in shown) == (word in signs.all_text_contents())
    assert ("%" in signs.all_text_contents()) == (
        "%" in page.locator(".sureness").first.inner_text()
    )
    ask(page, "France.borders")
    expect(page.locator(".key dl")).to_have_count(1)
    expect(page.locator(".key dl")).to_be_visible()
    assert "ruled out" not in signs.all_text_contents()


def test_the_tools_of_the_builder_have_explanations(open_page):
    page = open_page()
    advice = page.get_by_text("Choose a step in the drawing, then change it:")
    expect(advice).to_be_hidden()  # nothing to choose yet
    ask(page, "France.borders")
    expect(advice).to_be_visible()
    tools = page.get_by_role("group", name="Change the chosen step").get_by_role("button")
    expect(tools).to_have_count(5)
    titles = tools.evaluate_all("(all) => all.map((each) => each.title)")
    assert all(titles)
    assert len(set(titles)) == 5


def test_the_help_on_writing_questions_fits_and_its_examples_can_be_asked(open_page, served):
    page = open_page()
    page.get_by_text("How to write a question").click()
    written = page.locator(".grammar code")
    places = written.evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().x)")
    assert len({round(place) for place in places}) > 1, "side by side on a wide screen"
    for text in written.all_text_contents():
        query = re.sub(r"\b[ab]\b", "France", text)
        assert served.post("/api/parse", query=query).status_code == 200, query


def test_errors_and_news_are_announced_to_screen_readers(open_page):
    """A live region is only announced if it was on the page before its text."""
    page = open_page()
    politely, at_once = {"live": "polite", "shown": True}, {"live": "assertive", "shown": True}
    error, summary = page.locator("#question-error"), page.locator("ck-answers .summary")
    news = page.locator("#news")
    assert [live(each) for each in (error, summary, news)] == [politely] * 3
    assert live(page.locator("ck-notice")) == at_once
    expect(error).to_be_empty()
    page.get_by_label("Ask the graph").fill("Frnce.borders")
    expect(error).to_contain_text("unknown entity 'Frnce'")
    assert live(page.locator("#question-error .error-message")) == politely
    ask(page, "France.borders")
    expect(error).to_be_empty()
    expect(summary).to_contain_text("known")
    hold(page, "api/explain")
    page.locator(".answer button").first.click()
    expect(news).to_have_text("Looking for reasons…")
    release(page)
    expect(news).to_have_text(page.locator("ck-explanation .verdict").text_content())
    ask(page, "Japan.capital")
    expect(news).to_be_empty()


def test_a_text_that_cannot_be_parsed_is_not_replaced_by_the_builder(open_page):
    page = open_page()
    field, tools = page.get_by_label("Ask the graph"), page.locator("ck-builder .tools button")
    afresh = page.get_by_role("button", name="Start afresh")
    ask(page, "France.borders")
    expect(tools).to_have_count(5)
    expect(afresh).to_be_hidden()
    field.fill("France.borders & (Spain.bor")
    expect(page.get_by_text("The text above cannot be read")).to_be_visible()
    with pytest.raises(PlaywrightError):
        page.locator("[data-tool=not]").click(timeout=500)
    page.locator("[data-tool=not]").evaluate("(button) => button.click()")  # nor by a program
    page.evaluate("fetch('/api/about')")
    expect(field).to_have_value("France.borders & (Spain.bor")

    field.fill("France.borders & Spain.borders")
    expect(page.locator("ck-builder .diagram .node")).to_have_count(6)
    expect(afresh).to_be_hidden()
    page.locator("[data-tool=not]").click()
    expect(field).to_have_value("!(France.borders & Spain.borders)")

    field.fill("Frnce")
    afresh.click()
    expect(field).to_have_value("")
    expect(page.locator("#question-error")).to_be_hidden()
    expect(page.locator("[data-tool=start]")).to_be_focused()
    expect(afresh).to_be_hidden()
    assert "q=" not in page.url
    page.keyboard.press("Enter")
    pick(page, "Entity", "fran", "France")
    page.get_by_role("button", name="Add").click()
    expect(field).to_have_value("France")


def test_text_typed_while_the_builder_waits_for_the_server_is_kept(open_page):
    page = open_page()
    field = page.get_by_label("Ask the graph")
    ask(page, "France.borders")
    hold(page, "api/parse")
    page.locator("[data-tool=not]").click()
    wait_until_held(page)
    # The reply comes in before the pause after which typed text is read.
    type_and_act(page, "Spain.borders &", then="window.release()")
    expect(page.locator("ck-builder .held")).to_be_visible()
    expect(field).to_have_value("Spain.borders &")


def test_a_built_question_survives_a_keystroke_that_was_undone(open_page):
    page = open_page()
    ask(page, "France.borders")
    type_and_act(page, "France.borders ", "France.borders", then=clicking("[data-tool=not]"))
    expect(page.get_by_label("Ask the graph")).to_have_value("!France.borders")
    page.wait_for_timeout(500)  # longer than the pause after which typed text is read
    expect(page.locator("ck-builder .tone-not")).to_have_count(1)


def test_a_tool_used_before_the_text_is_parsed_waits_for_it(open_page):
    page = open_page()
    field = page.get_by_label("Ask the graph")
    ask(page, "France.borders")
    type_and_act(page, "Spain.borders &", then=clicking("[data-tool=remove]"))
    expect(page.locator("ck-builder .held")).to_be_visible()
    expect(field).to_have_value("Spain.borders &")


def test_a_text_is_parsed_even_if_old_answers_are_filtered_meanwhile(open_page):
    page = open_page()
    ask(page, "France.borders")
    type_and_act(page, "Japan.capital", then=clicking("input[name=only][value=known]"))
    expect(page.locator(".words")).to_contain_text("Japan")


def test_a_suggestion_corrects_sparql_with_an_iri(open_page):
    page = open_page()
    field = page.get_by_label("Ask the graph")
    field.fill("SELECT ?x WHERE { <Frnce> <borders> ?x }")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#question-error").get_by_role("button", name="France").click()
    expect(field).to_have_value("SELECT ?x WHERE { <urn:conekg:France> <borders> ?x }")
    expect(page.locator("#question-error")).to_be_hidden()


def test_a_name_survives_being_written_as_an_iri_and_parsed(open_page):
    names = ["France", "New Zealand", "http://a.org/b#c", "http://a b", "urn:x:y", "mailto:a@b.c"]
    names += ["urn:conekg:France", "http://a/<b>", "50%", "http://a/%41", "it's (so)", "été"]
    written = open_page().evaluate(
        """async (names) => {
          const { asIri } = await import("/static/question.js");
          return names.map(asIri);
        }""",
        names,
    )
    assert [name_of_iri(iri) for iri in written] == names
    assert not [iri for iri in written if re.search(r'[\x00-\x20<>"{}|\\^`]', iri)]
    assert written[2] == names[2], "what is an address already stays one"


def test_skipping_to_the_answers_keeps_the_question(open_page):
    page = open_page()
    ask(page, "France.borders")
    page.keyboard.press("Tab")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#answers-title")).to_be_focused()
    expect(page.locator(".answer")).to_have_count(10)
    expect(page.get_by_label("Ask the graph")).to_have_value("France.borders")
    assert "q=France.borders" in page.url


def test_a_late_answer_does_not_remove_a_newer_error(open_page):
    page = open_page()
    waiting = []
    page.route("**/api/ask", lambda route: waiting.append(route))
    field = page.get_by_label("Ask the graph")
    field.fill("France.borders")
    page.get_by_role("button", name="Ask", exact=True).click()
    field.fill("France.bordrs")
    expect(page.locator("#question-error")).to_contain_text("bordrs")
    wait_until(page, lambda: waiting)
    waiting.pop().continue_()
    expect(page.locator(".answer")).to_have_count(10)
    expect(page.locator("#question-error")).to_contain_text("bordrs")
    page.unroute("**/api/ask")
    field.fill("")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".answer")).to_have_count(0)
    assert "q=" not in page.url


def test_names_are_completed_in_paths_and_not_in_sparql(open_page):
    page = open_page()
    page.get_by_label("Ask the graph").focus()
    page.keyboard.type("select & Germa")  # something may be called "select"
    expect(page.get_by_role("option").first).to_contain_text("German")
    page.get_by_label("Ask the graph").fill("")
    with page.expect_response("**/api/parse"):
        page.keyboard.type("SELECT ?x WHERE { Germa")
    expect(page.get_by_role("option")).to_have_count(0)


def test_names_are_completed_while_typing_with_the_keyboard_alone(open_page):
    page = open_page()
    field = page.get_by_label("Ask the graph")
    field.focus()
    page.keyboard.type("New Zea")
    expect(page.get_by_role("option")).to_have_count(0)  # a space ends a bare name
    field.fill("")
    page.keyboard.insert_text('"new zea')  # at once, so that the list is of all of it
    expect(page.get_by_role("option").first).to_contain_text("New Zealand")
    page.keyboard.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", re.compile("completions"))
    page.keyboard.press("Enter")
    expect(field).to_have_value('"New Zealand"')
    page.keyboard.type(".")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.type("spea")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    expect(field).to_have_value('"New Zealand".speaks')
    expect(page.locator("ck-builder .diagram .node")).to_have_count(3)
    with page.expect_response("**/api/parse"):
        page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_have_count(10)
    page.locator("ck-builder .node[role=button]").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("ck-builder .is-selected .node-label")).to_have_text("New Zealand")
    page.locator(".answer button").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".why-card")).to_be_visible()


def test_a_highlighted_name_stays_highlighted_in_a_later_list_with_it(open_page):
    """The names for the second of two keystrokes may arrive after the arrow key."""
    told = open_page().evaluate(
        """async () => {
          const { Completion } = await import("/static/completion.js");
          const field = document.createElement("input");
          const completion = new Completion(field, {});
          const names = (...titles) => titles.map((title) => ({ title, note: "" }));
          const told = [];
          const tell = () => told.push(
            field.getAttribute("aria-activedescendant"),
            [...completion.list.children].map((each) => each.getAttribute("aria-selected")).join(),
          );
          completion.show(names("Niger", "Nigeria", "Norway"));
          completion.move(1); completion.move(1); tell();
          completion.show(names("Nigeria", "Norway")); tell();
          completion.show(names("Norway")); tell();
          completion.move(-1); tell();
          return told;
        }"""
    )
    ids = [each and each.rpartition("-")[2] for each in told[::2]]
    assert ids == ["1", "0", None, "0"]
    assert told[1::2] == ["false,true,false", "true,false", "false", "true"]


@pytest.mark.parametrize("composing", [{"isComposing": True}, {"keyCode": 229}])
def test_keys_of_an_input_method_neither_choose_nor_ask(open_page, composing):
    """They choose among the words of the input method; Safari marks them only by key code 229."""
    page = open_page()
    press = """(field, [key, composing]) =>
        field.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...composing }))"""
    field, options = page.get_by_label("Ask the graph"), page.get_by_role("option")
    field.focus()
    page.keyboard.insert_text("Fran")  # at once, so that the list is of all of it
    expect(options.first).to_contain_text("France")
    for key in ("ArrowDown", "Enter", "Tab", "Escape"):
        field.evaluate(press, [key, composing])
    expect(options.first).to_have_attribute("aria-selected", "false")
    expect(field).to_have_value("Fran")
    expect(page.locator("ck-answers .summary")).to_have_text("Answers appear here, best first.")
    field.evaluate(press, ["ArrowDown", {}])
    field.evaluate(press, ["Enter", {}])
    expect(field).to_have_value("France")

    page.locator("[data-tool=hop]").click()
    relation = page.get_by_label("Relation", exact=True)
    expect(options).not_to_have_count(0)
    page.keyboard.insert_text("bord")
    expect(options).to_have_count(2)
    for key in ("Escape", "Enter"):
        relation.evaluate(press, [key, composing])
    expect(relation).to_have_value("bord")
    relation.evaluate(press, ["Enter", {}])
    expect(relation).to_have_value("borders")


def test_more_answers_are_shown_up_to_the_servers_limit(open_page, start_server, answerer):
    with start_server(answerer, Limits(top_k=25)) as small:
        page = open_page(small.url)
        expect(page.locator("#source")).to_contain_text("geography")
        ask(page, "France.borders")
        expect(page.locator(".answer")).to_have_count(10)
        more = page.get_by_role("button", name="Show more")
        more.click()
        expect(page.locator(".answer")).to_have_count(25)
        expect(more).to_be_hidden()


def test_names_are_completed_and_cones_drawn_under_small_limits(open_page, start_server, answerer):
    limits = Limits(completions=3, dimensions=4, explanations=1)
    with start_server(answerer, limits) as small:
        page = open_page(small.url)
        page.get_by_label("Ask the graph").press_sequentially("Fran")
        expect(page.get_by_role("option")).to_have_count(3)
        ask(page, "France.borders")
        page.locator(".answer button").first.click()
        expect(page.locator("ck-cones svg")).to_have_count(4)


def test_escape_closes_the_list_and_keeps_the_text(open_page):
    page = open_page()
    field = page.get_by_label("Ask the graph")
    field.press_sequentially("Fran")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_have_count(0)
    expect(field).to_have_value("Fran")


def test_an_example_starts_a_question_and_a_link_repeats_it(open_page, served):
    page = open_page()
    page.locator(".example").nth(2).click()
    expect(page.locator(".answer")).to_have_count(10)
    link = page.url
    other = open_page()
    other.goto(link)
    other.reload()
    expect(other.locator(".answer")).to_have_count(10)
    expect(other.get_by_label("Ask the graph")).to_have_value(
        page.get_by_label("Ask the graph").input_value()
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("China.borders & India.borders", "China.borders & India.borders"),
        ("China.borders & India.borders", "China.borders%20%26%20India.borders"),
        ("France.borders | 100%", "France.borders | 100%"),
        ("A+B.borders", "A+B.borders"),
    ],
)
def test_a_link_written_by_hand_is_read_completely(open_page, served, text, written):
    page = open_page()
    page.goto(f"{served.url}/#q={written}")
    expect(page.get_by_label("Ask the graph")).to_have_value(text)


@pytest.mark.parametrize("typed", ["Spain.speaks", None])
def test_a_text_typed_before_a_slow_server_answers_is_not_replaced_by_the_link(
    open_page, served, typed
):
    page = open_page()
    page.goto("about:blank")
    page.add_init_script(f"({HOLD})('api/about')")
    page.goto(f"{served.url}/#q=France%0D%0A.borders")
    wait_until_held(page)
    field = page.get_by_label("Ask the graph")
    expect(field).to_have_value("France\n.borders")
    if typed is not None:
        field.fill(typed)
    release(page)
    expect(page.locator("#source")).to_contain_text("geography")
    expect(page.locator(".words")).to_contain_text("Spain" if typed else "France")
    expect(field).to_have_value(typed or "France\n.borders")
    expect(page.locator(".answer")).to_have_count(0 if typed else 10)


def test_the_server_going_away_shows_a_message_and_keeps_the_question(
    open_page, start_server, answerer
):
    with start_server(answerer) as own:
        page = open_page(own.url)
        ask(page, "France.borders")
        own.stop()
        page.get_by_role("button", name="Ask", exact=True).click()
        notice = page.get_by_role("alert")
        expect(notice).to_contain_text("The server does not answer")
        expect(page.get_by_label("Ask the graph")).to_have_value("France.borders")
        expect(notice.get_by_role("button", name="Try again")).to_be_visible()
        expect(page.locator("ck-builder .held")).to_be_hidden()  # nothing is wrong with the text


def test_a_guarded_server_asks_for_its_key(open_page, start_server, answerer):
    with start_server(answerer, api_key="s3same") as own:
        page = open_page(own.url)
        expect(page.get_by_label("this server requires its API key")).to_be_focused()
        page.keyboard.type("s3sam")
        page.keyboard.press("Enter")
        again = page.get_by_label("the API key that was sent is not this server's")
        expect(again).to_be_focused()
        again.fill("s3same")
        page.get_by_role("button", name="Use this key").click()
        expect(page.locator("#source")).to_contain_text("geography")
        expect(page.get_by_role("alert")).to_be_empty()
        ask(page, "France.borders")


def test_a_key_with_non_ascii_characters_is_sent_unchanged(open_page, start_server, answerer):
    """If such a key broke `fetch`, the server would seem to be gone until the tab is closed."""
    with start_server(answerer, api_key="clé à 東京") as running:
        page = open_page(running.url)
        field = page.get_by_label("this server requires its API key")
        field.fill("ключ")
        page.get_by_role("button", name="Use this key").click()
        field = page.get_by_label("the API key that was sent is not this server's")
        field.fill("clé à 東京")
        page.get_by_role("button", name="Use this key").click()
        expect(page.locator("#source")).to_contain_text("geography")
        expect(page.locator("ck-notice")).to_be_empty()


def test_names_are_text_and_never_markup(open_page, start_server):
    evil = '<img src=x onerror="document.title=1">'
    answerer = untrained_answerer([evil, "b"], [evil], [(0, 0, 1), (1, 0, 0)])
    with start_server(answerer) as own:
        page = open_page(own.url)
        page.get_by_role("button", name="Start from an entity").click()
        pick(page, "Entity", "<img", "<img")
        page.get_by_role("button", name="Add").click()
        page.get_by_role("button", name="hop").click()
        pick(page, "Relation", "<img", "<img")
        with page.expect_response("**/api/ask"):  # the answers to the entity alone are still there
            page.get_by_role("button", name="Add").click()
        expect(page.locator("ck-answers")).not_to_have_class(re.compile("is-waiting"))
        page.locator(".answer button").first.click()
        expect(page.locator(".why-card")).to_be_visible()
        expect(page.locator("main img")).to_have_count(0)
        assert page.title().endswith(" · conekg")


def test_answers_of_one_label_are_told_apart(open_page, start_server):
    labels = ["Jane Doe", "Jane Doe", "Bea"]
    facts = [(2, 0, 0), (2, 0, 1)]
    answerer = untrained_answerer(["q1", "q2", "b"], ["knows"], facts, labels=labels)
    with start_server(answerer) as own:
        page = open_page(own.url)
        ask(page, "Bea.knows")
        shown = page.locator(".answer-name")
        expect(shown).to_have_count(3)
        assert sorted(shown.all_text_contents()) == ["Bea", "Jane Doe (q1)", "Jane Doe (q2)"]


def test_trees_are_edited_without_changing_the_old_one(open_page):
    result = open_page().evaluate(
        """async () => {
          const t = await import("/static/tree.js");
          const a = t.entity("a"), b = t.entity("b"), c = t.entity("c");
          const text = (n) => n === null ? "-" : n.kind === "entity" ? n.name
            : n.kind === "hop" ? `${text(n.operands[0])}.${n.name}`
            : n.kind === "not" ? `!${text(n.operands[0])}`
            : `(${n.operands.map(text).join(n.kind === "and" ? " & " : " | ")})`;
          const two = t.join("and", t.hop(a, "r"), t.not(t.hop(b, "s")));
          const before = JSON.stringify(two);
          const results = [
            two,
            t.join("and", two, c),
            t.join("or", two, c),
            t.edit(two, [0, 0], (node) => t.hop(node, "q")),
            t.edit(two, [1], t.toggleNot),
            t.remove(two, [0]),
            t.remove(two, [0, 0]),
            t.remove(two, [1]),
            t.remove(t.join("and", two, c), [2]),
            t.remove(a, []),
            t.remove(t.hop(a, "r"), [0]),
          ].map(text);
          return { results, unchanged: JSON.stringify(two) === before };
        }"""
    )
    assert result["unchanged"]
    assert result["results"] == [
        "(a.r & !b.s)",
        "(a.r & !b.s & c)",
        "((a.r & !b.s) | c)",
        "(a.q.r & !b.s)",
        "(a.r & b.s)",
        "(a & !b.s)",
        "!b.s",
        "(a.r & b.s)",
        "(a.r & !b.s)",
        "-",
        "-",
    ]


def test_the_word_at_the_cursor(open_page):
    found = open_page().evaluate(
        """async () => {
          const { wordAt } = await import("/static/question.js");
          const texts = ["Fra", "France.bor", "France.^bo", '"New Zea', '"New Zealand".sp',
                         "a & b.", "?x: bord", "'it\\\\'s ", "(Spain | Ita"];
          return texts.map((text) => {
            const { start, word, expects } = wordAt(text, text.length);
            return [start, word, expects];
          });
        }"""
    )
    assert found == [
        [0, "Fra", "entity"],
        [7, "bor", "relation"],
        [7, "^bo", "relation"],
        [0, "New Zea", "entity"],
        [14, "sp", "relation"],
        [6, "", "relation"],
        [4, "bord", "any"],
        [0, "it\\'s ", "entity"],
        [9, "Ita", "entity"],
    ]


@pytest.mark.parametrize(
    ("typed", "chosen", "then"),
    [
        ('"South |".borders', "South Africa", '"South Africa".borders'),
        ("'South |'.borders | !'France'", "South Africa", "\"South Africa\".borders | !'France'"),
        ('"South | & "France".borders', "South Africa", '"South Africa" & "France".borders'),
        ("Fra|nce.borders", "France", "France.borders"),
        ("Fra|.borders", "France", "France.borders"),
        ("France.bor|ders.capital", "borders", "France.borders.capital"),
        ("France.|^borders.capital", "borders", "France.borders.capital"),
    ],
)
def test_a_chosen_name_takes_the_place_of_the_whole_word(open_page, typed, chosen, then):
    """The word may be in the middle of a question that is being corrected."""
    page = open_page()
    field = page.get_by_label("Ask the graph")
    field.fill(typed.replace("|", "", 1))
    field.evaluate(
        """(field, cursor) => {
          field.setSelectionRange(cursor, cursor);
          field.dispatchEvent(new Event("input"));
        }""",
        typed.index("|"),
    )
    page.get_by_role("option").filter(has_text=re.compile(f"^{chosen}")).first.click()
    expect(field).to_have_value(then)


def test_sectors_are_drawn_where_the_angles_say(open_page):
    quarter, most, whole = open_page().evaluate(
        """async () => {
          const { sector } = await import("/static/cones.js");
          return [sector(0, Math.PI / 4, 10), sector(Math.PI, 3, 10), sector(1, Math.PI, 10)];
        }"""
    )
    assert quarter == "M0 0 L7.07 7.07 A10 10 0 0 0 7.07 -7.07 Z"
    assert " 0 1 0 " in most, "more than a half circle goes the long way round"
    assert whole.count("A10 10") == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_the_page_fits_screens_and_schemes(open_page, viewport, scheme):
    page = open_page(viewport=viewport, scheme=scheme)
    ask(page, "Germany.borders & !German.^speaks")
    page.locator(".answer.is-predicted button").first.click()
    expect(page.locator(".why-card")).to_be_visible()
    words = re.findall(r"\w+", page.locator("main").inner_text())
    assert not {"null", "undefined", "NaN"} & set(words)
    assert page.locator(".examples-title").bounding_box()["height"] < 40, "short words stay whole"
    goal = page.locator("ck-builder .node-goal").bounding_box()
    canvas = page.locator("ck-builder .canvas").bounding_box()
    assert goal["x"] + goal["width"] <= canvas["x"] + canvas["width"] + 1, "the drawing is cut off"
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= viewport["width"], "the page must not scroll sideways"
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red = int(re.findall(r"\d+", paper)[0])
    assert (red < 60) is (scheme == "dark")
    if viewport is DESK and scheme == "light":
        take_picture(page)


def test_a_narrow_screen_has_the_answers_first_and_scrolls_to_them(open_page):
    page = open_page(viewport=PHONE)
    title = page.locator("#answers-title")
    ask(page, "Germany.borders & !German.^speaks")
    expect(title).to_be_in_viewport()
    expect(page.locator(".answer").nth(9)).to_be_in_viewport()
    page.locator(".answer button").first.click()
    expect(page.locator(".why-card")).to_be_in_viewport()
    tops = [card.bounding_box()["y"] for card in page.locator(".card").all()]
    assert len(tops) == 4
    assert tops == sorted(tops), "a screen reader reads the cards in the order that is seen"
    classes = [card.get_attribute("class") for card in page.locator(".card").all()]
    assert classes == [f"card {name}-card" for name in ("answers", "why", "cones", "graph")]
    # Building a question by clicking does not scroll away from the drawing.
    page.locator('[data-tool="not"]').click()
    expect(page.get_by_label("Ask the graph")).to_have_value("!(Germany.borders & !German.^speaks)")
    expect(page.locator("ck-answers")).not_to_have_class(re.compile("is-waiting"))
    expect(page.locator(".answer")).not_to_have_count(0)
    expect(page.locator('[data-tool="not"]')).to_be_in_viewport()
    # Neither does a mistake scroll away from the text that has it.
    page.get_by_label("Ask the graph").fill("Germny.borders")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#question-error")).to_be_in_viewport()
    page.evaluate("scrollTo(0, 0)")
    page.locator(".example").first.click()
    expect(page.locator(".answer").nth(9)).to_be_in_viewport()


def test_hidden_cards_leave_no_gap_on_a_narrow_screen(open_page):
    page = open_page(viewport=PHONE)
    answers, drawing = (
        page.locator(f".{name}-card").bounding_box() for name in ("answers", "graph")
    )
    assert 0 < drawing["y"] - (answers["y"] + answers["height"]) < 30


def test_a_wide_page_does_not_scroll_to_the_answers(open_page):
    page = open_page(viewport={"width": DESK["width"], "height": 500})
    ask(page, "Germany.borders & !German.^speaks")
    assert page.evaluate("scrollY") == 0


HOLD = """(path) => {
  const real = window.fetch;
  window.held = [];
  window.release = async () => {
    window.fetch = real;
    await Promise.all(window.held.map((go) => go()));
    await real("/api/about");
  };
  window.fetch = (address, options) =>
    address === path
      ? new Promise((done, fail) => {
          const go = () => real(address, { ...options, signal: null }).then(done, fail);
          window.held.push(go);
        })
      : real(address, options);
}"""


def hold(page, path: str) -> None:
    """From now on, requests of `path` wait for `release`, even if the page aborts them."""
    page.evaluate(HOLD, path)


def release(page) -> None:
    page.evaluate("window.release()")


def test_an_older_answer_never_replaces_a_newer_one(open_page):
    page = open_page()
    field, button = (
        page.get_by_label("Ask the graph"),
        page.get_by_role("button", name="Ask", exact=True),
    )
    ask(page, "France.borders")
    first = page.locator(".answer-name").all_text_contents()
    hold(page, "api/ask")
    field.fill("Japan.capital")
    button.click()
    wait_until_held(page)
    page.evaluate("window.late = window.held.pop()")
    field.fill("France.borders")
    button.click()
    wait_until_held(page)
    release(page)
    page.evaluate("window.late().then(() => fetch('/api/about'))")
    assert page.locator(".answer-name").all_text_contents() == first


def test_an_explanation_does_not_outlive_its_question(open_page):
    page = open_page()
    ask(page, "France.borders")
    hold(page, "api/explain")
    page.locator(".answer button").first.click()
    wait_until_held(page)
    ask(page, "Japan.capital")
    expect(page.locator(".words")).to_contain_text("Japan")
    release(page)
    expect(page.locator(".why-card")).to_be_hidden()


def test_slow_explanations_show_that_they_are_being_looked_for(open_page):
    page = open_page()
    ask(page, "France.borders.capital")
    first, second = (page.locator(".answer button").nth(place) for place in (0, 1))
    first.click()
    expect(page.locator("ck-cones svg")).to_have_count(8)
    page.get_by_text("What each step found").click()
    hold(page, "api/explain")
    second.click()
    name = second.locator(".answer-name").text_content()
    expect(page.locator("#explanation-title")).to_have_text(f"Why {name}")
    expect(page.locator("ck-explanation")).to_have_text("Looking for reasons…")
    expect(page.locator(".cones-card")).to_be_hidden()
    release(page)
    expect(page.locator("ck-explanation .verdict")).to_contain_text(name)
    expect(page.locator(".cones-card")).to_be_visible()
    expect(page.locator(".candidates").first).to_be_visible()


def test_a_failed_explanation_leaves_no_old_one_and_no_error_at_the_text(open_page):
    page = open_page()
    ask(page, "France.borders")
    page.locator(".answer button").first.click()
    expect(page.locator(".why-card")).to_be_visible()
    # As if another run were served now.
    gone = {"status": 404, "kind": "unknown_name", "message": "answer: unknown entity 'Monaco'"}
    page.route(
        "**/api/explain",
        lambda route: route.fulfill(status=404, body=json.dumps({"error": gone})),
    )
    page.locator(".answer button").nth(1).click()
    expect(page.locator("ck-notice")).to_contain_text(gone["message"])
    expect(page.locator("#question-error")).to_be_empty()
    expect(page.get_by_label("Ask the graph")).to_have_attribute("aria-invalid", "false")
    expect(page.locator(".why-card")).to_be_hidden()
    page.unroute("**/api/explain")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("ck-explanation .verdict")).to_be_visible()
    expect(page.locator("ck-notice")).to_be_empty()


def test_a_failure_stays_until_its_request_has_succeeded(open_page):
    busy = {"status": 503, "kind": "server_busy", "message": "too many requests at once"}
    page = open_page()
    page.route("**/api/ask", lambda route: route.fulfill(status=503, json={"error": busy}))
    hold(page, "api/parse")
    page.get_by_label("Ask the graph").fill("France.borders")
    page.get_by_role("button", name="Ask", exact=True).click()
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("too many requests at once")
    release(page)
    expect(page.locator(".words")).to_contain_text("France")
    expect(notice).to_contain_text("too many requests at once")
    page.unroute("**/api/ask")
    notice.get_by_role("button", name="Try again").click()
    expect(page.locator(".answer")).to_have_count(10)
    expect(notice).to_be_empty()


@pytest.mark.parametrize("last", ["ask", "parse"])
def test_try_again_repeats_all_failed_requests(open_page, last):
    page = open_page()
    page.route("**/api/*", lambda route: route.abort())
    hold(page, f"api/{last}")
    page.get_by_label("Ask the graph").fill("France.borders")
    page.get_by_role("button", name="Ask", exact=True).click()
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("The server does not answer")
    page.evaluate("window.release().catch(() => null)")
    page.unroute("**/api/*")
    notice.get_by_role("button", name="Try again").click()
    expect(page.locator(".words")).to_contain_text("France")
    expect(page.locator(".answer")).to_have_count(10)
    expect(notice).to_be_empty()


def test_back_and_forward_walk_through_the_questions(open_page):
    page = open_page()
    field = page.get_by_label("Ask the graph")
    for text in ("France.borders", "Japan.capital"):
        ask(page, text)
        expect(page.locator(".words")).to_contain_text(text.partition(".")[0])
    page.get_by_role("button", name="Ask", exact=True).click()  # the same again is no step
    page.go_back()
    expect(field).to_have_value("France.borders")
    expect(page.locator(".words")).to_contain_text("France")
    page.go_forward()
    expect(field).to_have_value("Japan.capital")
    page.go_back()
    expect(field).to_have_value("France.borders")
    page.go_back()
    expect(field).to_have_value("")
    expect(page.locator(".answer")).to_have_count(0)
    expect(page.locator(".words")).to_have_class(re.compile("invitation"))


def test_tab_leaves_a_field_for_what_follows_it_and_not_for_its_list(open_page):
    """Browsers let Tab stop at what scrolls; the list closes then, and the focus would be lost."""
    page = open_page()
    page.locator("[data-tool=start]").click()
    for field, following in (
        (page.get_by_label("Entity"), page.get_by_role("button", name="Add", exact=True)),
        (page.get_by_label("Ask the graph"), page.get_by_role("button", name="Ask", exact=True)),
    ):
        field.focus()
        page.keyboard.type("a")
        expect(page.get_by_role("option").nth(8)).to_be_attached()
        sizes = "each => [each.scrollHeight, each.clientHeight]"
        (shown,) = page.locator(".completions:visible").all()
        whole, visible = shown.evaluate(sizes)
        assert whole > visible, "the list scrolls"
        page.keyboard.press("Tab")
        expect(following).to_be_focused()


def test_a_question_is_built_with_the_keyboard_alone(open_page):
    page = open_page()
    field, press = page.get_by_label("Ask the graph"), page.keyboard.press

    def add(*names: str) -> None:
        for name in names:
            page.keyboard.type(name)
            expect(page.get_by_role("option").first).to_be_visible()
            press("Enter")
            press("Tab")
        press("Enter")

    page.locator("[data-tool=start]").focus()
    press("Enter")
    add("France")
    expect(field).to_have_value("France")
    expect(page.locator("ck-builder :focus")).to_have_count(1)
    page.locator("[data-tool=hop]").focus()
    press("Enter")
    press("Escape")  # closes the list
    press("Escape")  # closes the form
    expect(page.locator("[data-tool=hop]")).to_be_focused()
    press("Enter")
    add("borders")
    expect(field).to_have_value("France.borders")
    expect(page.locator("[data-tool=hop]")).to_be_focused()
    press("Tab")
    press("Tab")
    press("Tab")
    press("Enter")
    expect(field).to_have_value("!France.borders")
    expect(page.locator("[data-tool=not]")).to_be_focused()
    press("Enter")
    expect(field).to_have_value("France.borders")
    expect(page.locator("[data-tool=not]")).to_be_focused()


def test_enter_takes_no_suggestion_for_an_earlier_text(open_page):
    page = open_page()
    field, options = page.get_by_label("Ask the graph"), page.get_by_role("option")
    press, waiting = page.keyboard.press, []
    page.route("**/api/entities?prefix=Franc*", lambda route: waiting.append(route))

    page.locator("[data-tool=start]").click()
    page.keyboard.type("F")
    expect(options.first).to_contain_text("Fa")
    page.keyboard.insert_text("ranc")  # at once, so that nothing is asked about fewer letters
    press("Enter")  # the list is still of the first letter
    expect(options.first).to_contain_text("Fa")
    expect(page.locator("#pick-entity")).to_have_value("Franc")
    wait_until(page, lambda: waiting)
    waiting.pop().continue_()
    expect(page.locator("#pick-entity")).to_have_value("France")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(field).to_have_value("France")

    field.fill("")
    field.press_sequentially("F")
    expect(options.first).to_contain_text("Fa")
    press("ArrowDown")
    page.keyboard.insert_text("ranc")
    expect(options.first).to_contain_text("Fa")
    press("Enter")  # asks what is written, which is no question
    expect(field).to_have_value("Franc")
    expect(page.locator("#question-error")).to_contain_text("unknown entity 'Franc'")


NAMES = ["x" * 300, 'He said "<b>no</b>" & left; \\ it\'s', "😀😀", "Bea"]


def test_long_and_unusual_names_are_shown_whole_on_a_narrow_screen(open_page, start_server):
    facts = [(3, 0, 0), (3, 0, 1), (3, 0, 2), (0, 0, 1)]
    answerer = untrained_answerer(NAMES, ["r" * 90], facts, name="g" * 120)
    with start_server(answerer) as own:
        page = open_page(own.url, viewport={"width": 360, "height": 700}, scheme="dark")
        page.get_by_role("button", name="Start from an entity").click()
        pick(page, "Entity", "he said", "He said")
        page.get_by_role("button", name="Add").click()
        expect(page.locator(".answer-name")).to_have_text([NAMES[1]])
        ask(page, f"Bea.{'r' * 90}")
        expect(page.locator(".answer")).to_have_count(4)
        assert sorted(page.locator(".answer-name").all_text_contents()) == sorted(NAMES)
        ask(page, f"(Bea.{'r' * 90} & {'x' * 300}.{'r' * 90}) | Bea")
        expect(page.locator("ck-builder .diagram .node")).not_to_have_count(2)
        for row in page.locator(".answer button").all():
            row.click()
            expect(row).to_have_attribute("aria-pressed", "true")
            expect(page.locator(".why-card")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360

        page.get_by_label("Ask the graph").fill('"😀😀" & Beb')
        error = page.locator("#question-error")
        expect(error.locator("mark")).to_have_text("Beb")
        error.get_by_role("button", name="Bea").click()
        expect(page.get_by_label("Ask the graph")).to_have_value('"😀😀" & Bea')


@pytest.mark.parametrize("width", [320, 800, 1280])
def test_long_names_in_examples_and_suggestions_fit_any_screen(open_page, start_server, width):
    """As in a graph whose names are web addresses, which have no space to break at."""
    long = f"http://example.org/{'x' * 180}"
    examples = (
        Example(query=f'"{long}"."{long}"', reading=f"what {long} leads to", shape="1p"),
        Example(query=f'Bea.^"{long}"', reading="what leads to Bea", shape="1p"),
    )
    answerer = untrained_answerer([long, "Bea"], [long], [(0, 0, 1)])
    with start_server(answerer, examples=examples) as own:
        page = open_page(own.url, viewport={"width": width, "height": 700})
        expect(page.locator(".example")).to_have_count(2)
        page.get_by_label("Ask the graph").fill(f'"{long}x"')
        page.keyboard.press("Escape")
        expect(page.locator("#question-error .chip")).to_have_text(long)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_label("Ask the graph").fill("Bea.")
        notes = page.locator(".question .completion-note")
        expect(notes).to_have_text(["relation", "backwards"])
        cut = "(notes) => notes.filter((note) => note.scrollWidth > note.clientWidth).length"
        assert notes.evaluate_all(cut) == 0


def test_suggestions_tell_entities_of_one_label_apart(open_page, start_server, namesakes):
    with start_server(namesakes) as own:
        page = open_page(own.url)
        page.get_by_label("Ask the graph").fill('"Jane Doe".born_in')
        page.keyboard.press("Escape")
        chips = page.locator("#question-error .chip")
        expect(chips).to_have_text(["Q1 (born_in: Cork)", "Q2 (born_in: Delft)"])
        chips.last.click()
        expect(page.get_by_label("Ask the graph")).to_have_value("Q2.born_in")


def test_a_drawing_that_is_too_wide_scrolls_to_the_chosen_step(open_page):
    page = open_page(viewport=PHONE)
    names = ("France", "Germany", "Italy", "Spain", "Austria", "Poland", "Chile", "Peru")
    countries = " | ".join(f"{name}.borders" for name in names)
    deep = f"({countries}).uses_currency" + ".^uses_currency.uses_currency" * 2

    def draw(text: str) -> None:  # without asking: answers would be brought into view
        page.get_by_label("Ask the graph").fill(text)
        expect(page.locator("ck-builder .edge-label")).to_have_count(text.count("."))

    def is_seen() -> bool:
        return page.evaluate(
            """() => {
              const canvas = document.querySelector("ck-builder .canvas");
              const [mark, place] = [canvas.querySelector(".is-selected .mark"), canvas].map(
                (each) => each.getBoundingClientRect(),
              );
              return mark.left >= place.left && mark.right <= place.right;
            }"""
        )

    draw(deep)
    canvas = page.locator("ck-builder .canvas")
    assert canvas.evaluate("(each) => each.scrollWidth > 1.5 * each.clientWidth")
    assert is_seen()
    canvas.evaluate("(each) => { each.scrollLeft = 0; }")
    assert not is_seen()
    draw(f"{deep}.^uses_currency")
    assert is_seen()
    assert page.evaluate("scrollY") == 0


@pytest.mark.parametrize("type_size", [16, 26])
def test_texts_of_drawings_fit_in_every_script_and_font_size(open_page, start_server, type_size):
    """Wide letters, as in many scripts, and a larger font size chosen by the reader."""
    names = ["W" * 12, "M" * 200, "Ill"]
    facts = [(0, 0, 1), (2, 0, 1), (0, 1, 2)]
    with start_server(untrained_answerer(names, ["W" * 14, "is"], facts)) as own:
        page = open_page(own.url)
        page.evaluate(f"document.documentElement.style.fontSize = '{type_size}px'")
        ask(page, f"({names[0]}.{'W' * 14} & Ill.is) | {names[1]}.is")
        page.locator(".answer button").first.click()
        expect(page.locator("ck-explanation .diagram")).to_be_visible()
        outside = page.evaluate(
            """() => [...document.querySelectorAll(".diagram text")].filter((words) => {
              const node = words.parentElement.querySelector(".mark");
              const inner = words.getBoundingClientRect();
              const outer = (node ?? words.closest("svg")).getBoundingClientRect();
              return inner.left < outer.left || inner.right > outer.right;
            }).map((words) => words.textContent)"""
        )
        assert outside == []
        shown = page.locator("ck-builder .node-label").all_text_contents()
        assert names[0] in shown
        assert any(re.fullmatch("M{5,}…", text) for text in shown)
        height = page.locator("ck-builder .node-label").first.bounding_box()["height"]
        assert height > 0.8 * type_size


def test_a_path_is_drawn_again_when_its_width_changes(open_page):
    page = open_page()
    ask(page, "France.borders.capital")
    page.locator(".answer button").first.click()
    drawing = page.locator("ck-explanation .diagram")
    expect(drawing).to_be_visible()

    def is_across() -> bool:
        return drawing.evaluate("(each) => each.clientWidth > each.clientHeight")

    assert is_across(), "from the start"
    page.set_viewport_size({"width": 360, "height": 640})
    wait_until(page, lambda: not is_across())
    page.set_viewport_size(DESK)
    wait_until(page, is_across)


def test_the_field_fits_its_question_when_a_phone_is_turned(open_page):
    lying = {"width": 844, "height": 390}
    page = open_page(viewport=lying)
    field = page.get_by_label("Ask the graph")
    field.fill(" | ".join(f"{name}.borders" for name in ("France", "Germany", "Italy", "Spain")))
    height = field.bounding_box()["height"]
    page.set_viewport_size(PHONE)
    wait_until(page, lambda: field.bounding_box()["height"] > height)
    assert field.evaluate("(field) => field.scrollHeight === field.clientHeight")
    page.set_viewport_size(lying)
    wait_until(page, lambda: field.bounding_box()["height"] == height)


def test_an_empty_result_says_which_filter_is_on(open_page):
    page = open_page()
    field, summary = page.get_by_label("Ask the graph"), page.locator("ck-answers .summary")
    field.fill("France.borders & !France.borders")
    field.press("Enter")
    expect(summary).to_have_text("Nothing can answer this question, whatever facts are missing.")
    page.get_by_text("known", exact=True).first.click()
    expect(summary).to_have_text("No known answer.")


def test_no_word_of_a_name_is_broken_on_the_narrowest_screens(open_page):
    """320 pixels, or 1,280 at four times the size; only names without a space may break."""
    page = open_page(viewport={"width": 320, "height": 640})
    ask(page, '"South America".^in_subregion.capital')
    broken = page.locator(".answer-name").evaluate_all(
        """(names) => names.flatMap((name) => {
          const text = name.firstChild, range = document.createRange();
          return [...text.data.matchAll(/\\S+/g)].filter(({ 0: word, index }) => {
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            return range.getClientRects().length > 1;
          }).map(([word]) => word);
        })"""
    )
    assert broken == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_a_long_list_of_answers_keeps_its_place_while_one_is_explained(open_page):
    page = open_page()
    ask(page, "France.borders")
    for count in (30, 90):
        page.get_by_role("button", name="Show more").click()
        expect(page.locator(".answer")).to_have_count(count)
    last = page.locator(".answer button").last
    last.click()
    expect(page.locator(".why-card")).to_be_in_viewport()
    expect(last).to_be_in_viewport()


def test_right_to_left_names_keep_their_place_beside_signs(open_page, start_server):
    """The closing bracket of such a name is at its left end, wherever the name is shown."""
    name = "القاهرة (مصر)"
    with start_server(untrained_answerer([name, "Bea"], ["knows"], [(1, 0, 0)])) as own:
        page = open_page(own.url)
        ask(page, "Bea.knows")
        page.locator(".answer button").filter(has_text=name).click()
        expect(page.locator("ck-cones .verdict strong")).to_have_text(name)
        places = (
            ".answer-name",
            "#explanation-title bdi",
            ".why-card strong",
            ".cones-card strong",
        )
        for place in places:
            shown = page.locator(place).filter(has_text=name)
            bracket, first = shown.evaluate(
                """(shown) => [shown.firstChild.data.length - 1, 0].map((index) => {
                  const range = document.createRange();
                  range.setStart(shown.firstChild, index);
                  range.setEnd(shown.firstChild, index + 1);
                  return range.getBoundingClientRect().left;
                })"""
            )
            assert bracket < first, place


def test_a_browser_without_storage_can_ask_with_a_key(browser, start_server, answerer):
    """Where cookies are blocked, even accessing the storage is an error."""
    with start_server(answerer, api_key="s3same") as own:
        page = browser.new_page()
        page.add_init_script(
            """Object.defineProperty(window, "sessionStorage", {
              get() { throw new DOMException("denied", "SecurityError"); },
            });"""
        )
        page.goto(own.url)
        page.get_by_label("this server requires its API key").fill("s3same")
        page.get_by_role("button", name="Use this key").click()
        expect(page.locator("#source")).to_contain_text("geography")
        ask(page, "France.borders")
        page.close()


def test_a_response_that_breaks_off_is_reported_as_a_lost_server(open_page):
    page = open_page()
    ask(page, "France.borders")
    page.evaluate(
        """() => {
          const real = window.fetch;
          window.fetch = async (address, options) => {
            if (address !== "api/ask") return real(address, options);
            window.fetch = real;
            const broken = { start: (body) => body.error(new TypeError()) };
            return new Response(new ReadableStream(broken));
          };
        }"""
    )
    page.get_by_role("button", name="Ask", exact=True).click()
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("The server does not answer")
    notice.get_by_role("button", name="Try again").click()
    expect(page.locator(".answer")).to_have_count(10)
    expect(notice).to_be_empty()


def test_answers_to_an_earlier_question_are_not_explained_by_a_later_one(open_page):
    page = open_page()
    ask(page, "France.borders")
    hold(page, "api/ask")
    page.get_by_label("Ask the graph").fill("Japan.capital")
    page.get_by_role("button", name="Ask", exact=True).click()
    wait_until_held(page)
    with pytest.raises(PlaywrightError):
        page.locator(".answer button").first.click(timeout=500)
    expect(page.locator(".why-card")).to_be_hidden()
    release(page)
    expect(page.locator("ck-answers")).not_to_have_class(re.compile("is-waiting"))
    page.locator(".answer button").first.click()
    expect(page.locator(".why-card")).to_be_visible()


def test_show_more_by_keyboard_focuses_the_first_new_answer(open_page):
    page = open_page()
    ask(page, "France.borders")
    page.get_by_role("button", name="Show more").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_have_count(30)
    expect(page.locator(".answer button").nth(10)).to_be_focused()
    page.get_by_label("Ask the graph").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_have_count(10)
    expect(page.get_by_label("Ask the graph")).to_be_focused()


def test_answers_stay_when_more_of_them_cannot_be_had(open_page):
    page = open_page()
    names, buttons = page.locator(".answer-name"), page.locator(".answer button")
    failure, news = page.locator("ck-answers .notice"), page.locator("#news")
    ask(page, "France.borders")
    first, summary = names.all_text_contents(), page.locator(".summary").text_content()
    buttons.first.click()
    expect(page.locator(".why-card")).to_be_visible()
    page.route("**/api/ask", lambda route: route.abort())
    page.get_by_role("button", name="Show more").focus()
    for _ in range(2):  # the second attempt fails, too
        page.keyboard.press("Enter")
        expect(failure).to_contain_text("The server does not answer")
        expect(page.get_by_role("button", name="Try again")).to_be_focused()
    assert live(failure) == {"live": "polite", "shown": True}
    expect(news).to_be_empty()
    expect(page.get_by_role("alert")).to_be_empty()
    assert names.all_text_contents() == first
    expect(page.locator(".summary")).to_have_text(summary)
    expect(page.locator(".why-card")).to_be_visible()
    buttons.nth(1).click()
    expect(page.locator("#explanation-title")).to_have_text(f"Why {first[1]}")

    page.unroute("**/api/ask")
    hold(page, "api/ask")
    page.get_by_role("button", name="Try again").focus()
    page.keyboard.press("Enter")
    wait_until_held(page)
    expect(news).to_have_text("Looking for more answers…")
    expect(failure).to_have_count(0)
    release(page)
    expect(names).to_have_count(30)
    assert names.all_text_contents()[:10] == first
    assert len(set(names.all_text_contents())) == 30
    expect(buttons.nth(10)).to_be_focused()
    expect(page.get_by_role("button", name="Show more")).to_be_visible()
    expect(news).to_be_empty()


def test_another_question_forgets_that_there_were_no_more_answers(open_page):
    page = open_page()
    ask(page, "France.borders")
    page.route("**/api/ask", lambda route: route.abort())
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("ck-answers .notice")).to_be_visible()
    page.unroute("**/api/ask")
    ask(page, "Japan.capital")
    expect(page.locator("ck-answers .notice")).to_have_count(0)
    expect(page.locator(".answer")).to_have_count(10)
    expect(page.get_by_role("button", name="Show more")).to_be_visible()


def test_more_answers_of_a_server_that_wants_a_key_by_now_are_shown_with_it(open_page):
    page = open_page()
    ask(page, "France.borders")

    def guard(route):
        if "authorization" in route.request.headers:
            route.continue_()
        else:
            error = {"kind": "missing_key", "message": "its key, please"}
            route.fulfill(status=401, json={"error": error})

    page.route("**/api/ask", guard)
    page.get_by_role("button", name="Show more").click()
    expect(page.get_by_label("its key, please")).to_be_focused()
    expect(page.locator(".answer")).to_have_count(10)
    page.keyboard.type("s3same")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_have_count(30)
    expect(page.get_by_role("alert")).to_be_empty()


def test_the_title_of_the_page_has_the_question(open_page):
    page = open_page()
    assert page.title() == "conekg"
    for text in ("France.borders", "Japan.capital"):
        ask(page, text)
        expect(page).to_have_title(f"{text} · conekg")
    page.go_back()
    expect(page).to_have_title("France.borders · conekg")
    page.go_back()
    expect(page).to_have_title("conekg")


def test_unfolded_details_stay_unfolded(open_page):
    page = open_page()
    ask(page, "France.borders.capital")
    page.get_by_text("as logic").click()
    page.get_by_label("Ask the graph").fill("Spain.borders.capital")
    expect(page.locator(".notations code")).to_contain_text("Spain")
    expect(page.locator(".notations code")).to_be_visible()
    page.locator(".answer button").first.click()
    page.get_by_text("What each step found").click()
    second = page.locator(".answer button").nth(1)
    second.click()
    name = second.locator(".answer-name").text_content()
    expect(page.locator("#explanation-title")).to_have_text(f"Why {name}")
    expect(page.locator(".candidates").first).to_be_visible()


def test_the_printed_page_has_all_answers_in_dark_ink_and_no_controls(open_page):
    page = open_page(scheme="dark")
    ask(page, "France.borders")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".answer")).to_have_count(30)
    page.locator(".answer button").first.click()
    expect(page.locator(".why-card")).to_be_visible()
    page.emulate_media(media="print")
    hidden, shown = page.locator(".answers-card").evaluate(
        "(card) => [card.scrollHeight - card.clientHeight, card.clientHeight]"
    )
    assert hidden <= 0 < shown, "what is scrolled on a screen is cut off on paper"
    for place in (".tools", ".more", ".filters", "ck-examples", "footer"):
        expect(page.locator(place)).to_be_hidden()
    expect(page.locator(".words")).to_be_visible()
    assert luminance(page.locator(".words").evaluate("(e) => getComputedStyle(e).color")) < 0.1


def luminance(colour: str) -> float:
    """How bright a colour `rgb(r, g, b)` is, from 0 to 1, as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_enough_contrast(open_page, scheme):
    """4.5 to 1, as WCAG requires for text; also that of the placeholder."""
    page = open_page(scheme=scheme)
    ask(page, "Germany.borders & !German.^speaks")
    page.locator(".answer.is-predicted button").first.click()
    expect(page.locator(".why-card")).to_be_visible()
    found = page.evaluate(
        """() => {
          const ground = (element) => {
            const colour = getComputedStyle(element).backgroundColor;
            return colour === "rgba(0, 0, 0, 0)" && element.parentElement
              ? ground(element.parentElement) : colour;
          };
          const words = [...document.querySelectorAll("body *")].filter((element) =>
            element.checkVisibility() && element.namespaceURI.endsWith("xhtml") &&
            [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
          const told = words.map((each) =>
            [each.className || each.tagName, getComputedStyle(each).color, ground(each)]);
          const field = document.querySelector("#question");
          const pale = getComputedStyle(field, "::placeholder");
          return [...told, [`placeholder ${pale.opacity}`, pale.color, ground(field)]];
        }"""
    )
    assert len(found) > 40
    assert found[-1][0] == "placeholder 1"
    for name, ink, ground in found:
        darker, lighter = sorted((luminance(ink), luminance(ground)))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (name, ink, ground)


def test_the_selection_is_visible_with_forced_colours(open_page):
    page = open_page()
    ask(page, "France.borders")
    chosen = page.locator(".answer button").first
    chosen.click()
    expect(chosen).to_have_attribute("aria-pressed", "true")
    page.emulate_media(forced_colors="active")
    for place in (chosen, page.locator(".filters input:checked + span")):
        assert place.evaluate("(e) => getComputedStyle(e).outlineStyle") == "solid"
    other = page.locator(".filters input:not(:checked) + span").first
    assert other.evaluate("(e) => getComputedStyle(e).outlineStyle") == "none"


def test_the_api_page_works_offline(open_page, served):
    page = open_page(allow=("apple-mobile-web-app",))
    page.goto(f"{served.url}/docs")
    expect(page.get_by_text("/api/ask").first).to_be_visible()

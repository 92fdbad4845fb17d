//! Spans of somebody who means harm, or whose clock and head are wrong.

use kubewake_e2e::{ViewerProcess, viewer::TraceBuilder};
use serde_json::json;

use super::{no_complaints, open};

const MARKUP: &str = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";
const YEARS: f64 = 3.2e12;

fn hostile() -> (ViewerProcess, TraceBuilder) {
    let viewer = ViewerProcess::start();
    let mut told = TraceBuilder::new(1);
    let root = told.span(MARKUP, MARKUP, None, 0.0, 100.0);
    let huge = "x".repeat(1_000_000);
    told.attributes(&[
        (MARKUP, MARKUP),
        ("control", "a\u{0}b\u{7}c\u{1b}[31m\u{202e}desrever"),
        ("address", "javascript:document.title='owned'"),
        ("huge", &huge),
        ("k8s.object.kind", "../../evil"),
        ("k8s.object.name", "?a=b#c/../\u{0}"),
    ]);
    told.with_fields(json!({
        "status": {"code": 2, "message": MARKUP},
        "events": [{"name": MARKUP, "timeUnixNano": "1", "attributes": [{"key": "e", "value": {"stringValue": MARKUP}}]}],
        "links": [{"traceId": "ab".repeat(16), "spanId": "cd".repeat(8)}],
    }));
    told.span("lost", "its parent never came", Some("00000000deadbeef"), 5.0, 5.0);
    // The root and the lost one come before: the first of the circle is the child of its last.
    let last = told.span_id(4);
    let a = told.span("round", "circle a", Some(&last), 10.0, 5.0);
    let b = told.span("round", "circle b", Some(&a), 11.0, 2.0);
    let c = told.span("round", "circle c", Some(&b), 12.0, 1.0);
    assert_eq!(c, last);
    told.span("clock", "yesterday", Some(&root), -86_400_000.0, 1.0);
    told.span("clock", "in a hundred years", Some(&root), YEARS, 1.0);
    told.span("deep", "level 0", Some(&c), 20.0, 60.0);
    let mut above = root;
    for level in 1..=150 {
        above = told.span("deep", &format!("level {level}"), Some(&above), 20.0, 50.0);
    }
    told.span("long", &"name ".repeat(5000), Some(&above), 20.0, 0.0);
    viewer.send_and_wait(&told);
    (viewer, told)
}

#[test]
fn what_spans_say_is_only_ever_text() {
    let (viewer, told) = hostile();
    let browser = open(&viewer, "/search");
    browser.wait_for_text(".result .title", "<img src=x");
    browser.screenshot("hostile-search");
    browser.click(".result");
    browser.wait_for_url(told.id());
    browser.wait_for_text(".row .service", "<img src=x");
    browser.wait_until_visible(".warnings");
    browser.screenshot("hostile");
    browser.type_into(".finder input", "onerror");
    browser.press("\u{e007}");
    browser.wait_for_text(".details h2", "<script>");
    browser.wait_for_text(
        ".details .attributes",
        "a\u{27e8}0000\u{27e9}b\u{27e8}0007\u{27e9}c\u{27e8}001B\u{27e9}[31m\u{27e8}202E\u{27e9}desrever",
    );
    // A megabyte comes when it is asked for, and not all of it is laid out.
    browser.click_text(".attribute button", "Show all");
    browser.wait_for_text(".attribute pre", "xxxx");
    let longest = "return Math.max(...[...document.querySelectorAll('.details *')].map(e => e.children.length ? 0 : e.textContent.length))";
    assert!(browser.script(longest, &[]).as_u64().unwrap() <= 100_000);
    browser.screenshot("hostile-span");
    // Nothing of it ran, and no address of the page leads elsewhere.
    assert_ne!(browser.script("return document.title", &[]), "owned");
    assert_eq!(browser.count("main img, main script, main iframe"), 0);
    let elsewhere =
        "return [...document.querySelectorAll('a')].map(a => a.href).filter(href => !href.startsWith(location.origin))";
    assert_eq!(browser.script(elsewhere, &[]), json!([]));
    browser.click(".details .object-card");
    browser.wait_for_text(".object-head h1", "../../evil");
    assert!(browser.url().starts_with(&viewer.url("/objects/")), "{}", browser.url());
    browser.open(&viewer.url("/objects"));
    browser.click_text(".object-list a", "../../evil");
    browser.wait_for_text(".object-head h1", "../../evil");
    assert_ne!(browser.script("return document.title", &[]), "owned");
    no_complaints(&browser);
}

#[test]
fn search_and_other_traces_are_as_good_as_before() {
    let (viewer, _) = hostile();
    let mut good = TraceBuilder::new(2);
    good.span("shop", "buy", None, 0.0, 5.0);
    viewer.send_and_wait(&good);
    let browser = open(&viewer, "/search?service=shop");
    browser.wait_for_text(".result .title", "buy");
    assert_eq!(browser.count(".result"), 1);
    // A wrong parameter is said at its field.
    browser.type_into("input[name=minDuration]", "soon");
    browser.click_text("button", "Find traces");
    browser.wait_until_visible("[name=minDuration][aria-invalid=true]");
    browser.type_into("input[name=minDuration]", "1ms");
    browser.type_into("input[name=attr]", "no-value");
    browser.click_text("button", "Find traces");
    browser.wait_for_text(".field-attr .problem", "write key=value");
    browser.type_into("input[name=attr]", "a=\"b c\"");
    browser.click_text("button", "Find traces");
    browser.wait_for_text(".empty", "No trace matches");
    let complaints = browser.take_console_errors();
    assert!(complaints.iter().all(|complaint| complaint.contains("400")), "{complaints:?}");
}

#[test]
fn a_clock_that_is_centuries_ahead_does_not_squeeze_the_plot() {
    let viewer = ViewerProcess::start();
    let mut told = TraceBuilder::new(1);
    told.span("clock", "far", None, 1.6e13, 1.0);
    viewer.send_and_wait(&told);
    for number in 2..5 {
        let mut told = TraceBuilder::new(number);
        told.span("shop", "buy", None, 0.0, 5.0);
        viewer.send_and_wait(&told);
    }
    let browser = open(&viewer, "/search");
    browser.wait_for_text(".scatter .beyond", "1 in the future");
    let left = "return [...document.querySelectorAll('.point:not(.edge)')].map(point => parseFloat(point.style.left))";
    let left: Vec<f64> = serde_json::from_value(browser.script(left, &[])).unwrap();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.iter().any(|place| (10.0..90.0).contains(place)), "{left:?}");
    browser.screenshot("far-future");
    browser.click(".point.edge");
    browser.wait_for_url(told.id());
    browser.click(".row:not(.head)");
    browser.wait_for_text(".details .status.warn", "future");
    assert_eq!(browser.count(".details .status.warn"), 1);
    no_complaints(&browser);
}

#[test]
fn a_search_for_the_same_value_finds_it_or_is_not_offered() {
    let viewer = ViewerProcess::start();
    let mut told = TraceBuilder::new(1);
    told.span("shop", "buy", None, 0.0, 5.0);
    let value = |key: &str, value: serde_json::Value| json!({"key": key, "value": value});
    told.with_fields(json!({"attributes": [
        value("blanks", json!({"stringValue": "  a \"b\" "})),
        value("quotes", json!({"stringValue": "\"a\""})),
        value("list", json!({"arrayValue": {"values": [{"stringValue": "<a>&"}, {"doubleValue": 1.0}, {"intValue": "7"}]}})),
        value("map", json!({"kvlistValue": {"values": [value("z", json!({"boolValue": true})), value("a", json!({"doubleValue": 1e-7}))]}})),
        value("large", json!({"intValue": "9007199254740993"})),
        value("nan", json!({"doubleValue": "NaN"})),
        value("infinite", json!({"doubleValue": "-Infinity"})),
        value("none", json!({})),
        value("odd=key", json!({"stringValue": "a"})),
    ]}));
    viewer.send_and_wait(&told);
    let browser = open(&viewer, &format!("/trace/{}", told.id()));
    browser.click(".row:not(.head)");
    browser.wait_for_text(".details .attributes", "quotes");
    let links = "return [...document.querySelectorAll('.details .section:first-of-type .attribute')]
        .filter(e => e.querySelector('a')).map(e => [e.querySelector('dt').textContent, e.querySelector('a').getAttribute('href')])";
    let links: Vec<(String, String)> = serde_json::from_value(browser.script(links, &[])).unwrap();
    let keys: Vec<_> = links.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["blanks", "large", "list", "map", "quotes"]);
    for (_, link) in &links {
        browser.open(&viewer.url(link));
        browser.wait_for_text(".result .title", "buy");
    }
    no_complaints(&browser);
}

#[test]
fn a_full_store_drops_the_oldest_traces_and_says_so() {
    let viewer = ViewerProcess::start_with(&["--memory", "1MiB"]);
    let browser = open(&viewer, "/search");
    let large = "x".repeat(100_000);
    for number in 1..=12 {
        let mut told = TraceBuilder::new(number);
        told.span("shop", &format!("order {number}"), None, 0.0, 5.0);
        told.attributes(&[("large", &large)]);
        viewer.send_and_wait(&told);
    }
    // Who looks is told, also whoever comes later.
    browser.wait_for_text(".results-head", "the store is full: ");
    browser.reload();
    browser.wait_for_text(".result .title", "order 12");
    browser.wait_for_text(".results-head", "dropped");
    let titles = browser.texts(".result .title");
    assert!(titles[0].contains("order 12") && !titles.iter().any(|title| title.ends_with("order 1")), "{titles:?}");
    browser.screenshot("full");
    let said = viewer.get("/metrics").text();
    let dropped = said.lines().find_map(|line| line.strip_prefix("kubewake_viewer_dropped_traces_total "));
    assert!(dropped.is_some_and(|number| number != "0"), "{said}");
    no_complaints(&browser);
}

#[test]
fn a_trace_that_is_too_large_is_not_said_to_have_pushed_others_out() {
    let viewer = ViewerProcess::start_with(&["--memory", "1MiB"]);
    let browser = open(&viewer, "/search");
    let mut told = TraceBuilder::new(1);
    told.span("shop", "order", None, 0.0, 5.0);
    told.attributes(&[("large", &"x".repeat(400_000))]);
    viewer.send(&told);
    browser.wait_for_text(".results-head", "1 trace too large for the store");
    browser.screenshot("too-large");
    let store = &viewer.get("/api/v1/info").json()["store"];
    assert_eq!((&store["dropped"]["traces"], &store["refused"]), (&json!(0), &json!({"traces": 1, "spans": 1})));
    assert!(!browser.text(".results-head").contains("full"));
    no_complaints(&browser);
}

#[test]
fn a_message_with_control_characters_is_shown_by_their_numbers() {
    let viewer = ViewerProcess::start();
    let mut told = TraceBuilder::new(1);
    told.span("shop", "buy", None, 0.0, 5.0);
    told.with_fields(json!({"status": {"code": 2, "message": "\u{1b}]0;title\u{7} <h1>bad</h1>"}}));
    viewer.send_and_wait(&told);
    let browser = open(&viewer, &format!("/trace/{}", told.id()));
    browser.click(".row:not(.head)");
    browser.wait_for_text(".details .status.bad", "\u{27e8}001B\u{27e9}]0;title\u{27e8}0007\u{27e9} <h1>bad</h1>");
    no_complaints(&browser);
}

#[test]
fn a_bad_duration_is_said_to_be_bad_and_nothing_waits_for_it() {
    let viewer = ViewerProcess::start();
    let browser = open(&viewer, "/search?minDuration=soon");
    browser.wait_for_text(".field-minDuration .problem", "duration");
    browser.wait_until_gone(".results-head .live");
    browser.open(&viewer.url("/search"));
    browser.wait_for_text(".results-head .live", "Live");
}

//! Somebody sends a colleague a link, uses the keyboard, and takes traces along.

use std::fs;

use kubewake_e2e::{Viewer, eventually, viewer::Told};
use serde_json::{Value, json};

use super::{no_complaints, open};

/// Two levels, and an error at the end.
fn told() -> (Told, String) {
    let mut told = Told::new(7);
    let root = told.span("shop", "checkout", None, 0.0, 1000.0);
    let cart = told.span("cart", "load cart", Some(&root), 100.0, 300.0);
    told.span("cart", "read item", Some(&cart), 150.0, 100.0);
    told.span("bank", "charge", Some(&root), 500.0, 400.0);
    told.attributes(&[("card", "declined")]).with(json!({"status": {"code": 2, "message": "no money"}}));
    (told, cart)
}

#[test]
fn every_state_of_a_trace_is_in_its_address() {
    let viewer = Viewer::start();
    let (told, cart) = told();
    viewer.take(&told);
    let browser = open(&viewer, &format!("/trace/{}", told.id()));
    browser.click_text(".row", "charge");
    browser.await_url("span=");
    browser.click(&format!(".row[data-span='{cart}'] .toggle"));
    browser.await_url(&format!("collapsed={cart}"));
    browser.click_text("label.check", "Waiting");
    browser.await_url("gaps=false");
    // A stretch of time, drawn on the overview.
    let place = browser.script("const b = document.querySelector('.map').getBoundingClientRect(); return [b.left, b.width, b.top + b.height / 2]", &[]);
    let number = |at: usize| place[at].as_f64().unwrap();
    let x = |share: f64| (number(0) + number(1) * share) as i32;
    browser.drag((x(0.4), number(2) as i32), (x(0.95), number(2) as i32));
    browser.await_url("from=");
    browser.type_into(".finder input", "declined");
    browser.await_url("q=declined");

    let url = browser.url();
    let state = |browser: &kubewake_e2e::Browser| {
        let script = "return [...document.querySelectorAll('.row:not(.head)')].map(r => r.className + r.innerText)";
        (browser.script(script, &[]), browser.text(".details h2"), browser.texts(".tick"))
    };
    let before = state(&browser);
    let colleague = open(&viewer, "/");
    colleague.open(&url);
    colleague.await_text(".details h2", "charge");
    assert_eq!(state(&colleague), before);
    assert_eq!(colleague.url(), url);
    no_complaints(&browser);
    no_complaints(&colleague);
}

#[test]
fn every_field_of_the_search_counts() {
    let viewer = Viewer::start();
    let (failed, _) = told();
    viewer.take(&failed);
    let mut good = Told::new(8);
    good.span("shop", "refund", None, 0.0, 10.0);
    good.attributes(&[("card", "declined"), ("till", "2")]);
    viewer.take(&good);
    let browser = open(&viewer, "/search");
    browser.await_text(".results-head .total", "2 traces");
    let find = |title: &str| {
        browser.click_text("button", "Find traces");
        browser.await_text(".results-head .total", "1 trace");
        browser.await_text(".result .title", title);
        let url = browser.url();
        browser.click_text(".form a", "Clear");
        browser.await_text(".results-head .total", "2 traces");
        url
    };
    browser.click("input[name=errors]");
    assert!(find("checkout").contains("errors=true"));
    browser.script("document.querySelector('[name=service]').value = 'bank'", &[]);
    assert!(find("checkout").contains("service=bank"));
    browser.type_into("input[name=operation]", "refund");
    find("refund");
    browser.type_into("input[name=attr]", "card=declined till=2");
    find("refund");
    browser.type_into("input[name=maxDuration]", "500ms");
    find("refund");
    // A stretch of time, drawn on the plot: both traces began in it.
    let place = browser.script("const b = document.querySelector('.scatter').getBoundingClientRect(); return [b.left, b.width, b.top + b.height / 2]", &[]);
    let number = |at: usize| place[at].as_f64().unwrap();
    let x = |share: f64| (number(0) + number(1) * share) as i32;
    browser.drag((x(0.1), number(2) as i32), (x(0.95), number(2) as i32));
    browser.await_url("start=");
    browser.await_text("[name=lookback] option:checked", "A stretch of time");
    no_complaints(&browser);
}

#[test]
fn the_keyboard_is_enough() {
    let viewer = Viewer::start();
    let (told, _) = told();
    viewer.take(&told);
    let browser = open(&viewer, "/search");
    browser.await_seen(".result");
    browser.press("j\u{e007}");
    browser.await_url(told.id());
    browser.await_seen(".row");
    browser.press("?");
    browser.await_text("dialog[open]", "Collapse one level");
    browser.screenshot("keyboard");
    browser.press("?");
    browser.await_gone("dialog[open]");
    browser.press("jj");
    browser.await_text(".details h2", "load cart");
    // The sheet gets the key, not what lies behind it.
    browser.press("?");
    browser.await_seen("dialog[open]");
    browser.press("\u{e00c}");
    browser.await_gone("dialog[open]");
    browser.await_text(".details:not([hidden]) h2", "load cart");
    browser.press("p");
    eventually("a level is closed", || browser.count(".row:not(.head)") == 3);
    browser.press("[");
    eventually("everything is open", || browser.count(".row:not(.head)") == 4);
    // The next error.
    browser.press("n");
    browser.await_text(".details h2", "charge");
    browser.press("\u{e00c}");
    browser.await_gone(".details:not([hidden])");
    browser.press("/cart");
    browser.await_text(".found-count", "2");
    assert_eq!(browser.count(".row.match"), 2);
    browser.press("\u{e00c}");
    browser.press("d\u{e013}");
    browser.await_url("from=");
    browser.press("0");
    eventually("everything is shown", || !browser.url().contains("from="));
    browser.press("go");
    browser.await_url("/objects");
    no_complaints(&browser);
}

#[test]
fn a_trace_is_copied_exported_and_imported() {
    let viewer = Viewer::start();
    let (told, _) = told();
    viewer.take(&told);
    let browser = open(&viewer, &format!("/trace/{}", told.id()));
    browser.allow_clipboard();
    browser.await_seen(".row");
    let copied = |what: &str| {
        browser.click_text(".trace-tools .menu summary", "Copy");
        browser.click_text(".trace-tools .menu-list button", what);
        browser.await_text(".toast", "copied");
        let text = browser.script("return navigator.clipboard.readText()", &[]);
        browser.script("document.querySelectorAll('.toast').forEach(toast => toast.remove())", &[]);
        text.as_str().unwrap().to_owned()
    };
    assert!(copied("traceparent").starts_with(&format!("00-{}-", told.id())));
    let json: Value = serde_json::from_str(&copied("JSON")).unwrap();
    assert_eq!(json["spans"].as_array().unwrap().len(), 4);
    let otlp = copied("OTLP JSON");
    let exported = viewer.get(
        browser.script("return document.querySelector('a[download]').getAttribute('href')", &[]).as_str().unwrap(),
    );
    assert_eq!(serde_json::from_str::<Value>(&otlp).unwrap(), exported.json());

    // The file, into another viewer.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    fs::write(&file, &otlp).unwrap();
    let other = Viewer::start();
    browser.open(&other.url("/search"));
    browser.click("button[aria-label='Import OTLP JSON']");
    browser.choose_file("input[type=file]", &file);
    browser.await_url(&format!("/trace/{}", told.id()));
    browser.await_text(".row .operation", "charge");
    // One that is none of that.
    fs::write(&file, "{\"resourceSpans\": 7}").unwrap();
    browser.click("button[aria-label='Import OTLP JSON']");
    browser.choose_file("input[type=file]", &file);
    browser.await_text(".toast.bad", "Cannot import trace.json");
    let complaints = browser.complaints();
    assert!(complaints.iter().all(|complaint| complaint.contains("400")), "{complaints:?}");
}

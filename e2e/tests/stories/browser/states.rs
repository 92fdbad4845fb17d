//! Somebody sends a colleague a link, uses the keyboard, and takes traces along.

use std::fs;

use kubewake_e2e::{ViewerProcess, viewer::TraceBuilder, wait_until};
use serde_json::{Value, json};

use super::{no_complaints, open};

/// Two levels, and an error at the end.
fn told() -> (TraceBuilder, String) {
    let mut told = TraceBuilder::new(7);
    let root = told.span("shop", "checkout", None, 0.0, 1000.0);
    let cart = told.span("cart", "load cart", Some(&root), 100.0, 300.0);
    told.span("cart", "read item", Some(&cart), 150.0, 100.0);
    told.span("bank", "charge", Some(&root), 500.0, 400.0);
    told.attributes(&[("card", "declined")]).with_fields(json!({"status": {"code": 2, "message": "no money"}}));
    (told, cart)
}

#[test]
fn every_state_of_a_trace_is_in_its_address() {
    let viewer = ViewerProcess::start();
    let (told, cart) = told();
    viewer.send_and_wait(&told);
    let browser = open(&viewer, &format!("/trace/{}", told.id()));
    browser.click_text(".row", "charge");
    browser.wait_for_url("span=");
    browser.click(&format!(".row[data-span='{cart}'] .toggle"));
    browser.wait_for_url(&format!("collapsed={cart}"));
    browser.click_text("label.check", "Waiting");
    browser.wait_for_url("gaps=false");
    // A stretch of time, drawn on the overview.
    let place = browser.script("const b = document.querySelector('.map').getBoundingClientRect(); return [b.left, b.width, b.top + b.height / 2]", &[]);
    let number = |at: usize| place[at].as_f64().unwrap();
    let x = |share: f64| (number(0) + number(1) * share) as i32;
    browser.drag((x(0.4), number(2) as i32), (x(0.95), number(2) as i32));
    browser.wait_for_url("from=");
    browser.type_into(".finder input", "declined");
    browser.wait_for_url("q=declined");

    let url = browser.url();
    let state = |browser: &kubewake_e2e::Browser| {
        let script = "return [...document.querySelectorAll('.row:not(.head)')].map(r => r.className + r.innerText)";
        (browser.script(script, &[]), browser.text(".details h2"), browser.texts(".tick"))
    };
    let before = state(&browser);
    let colleague = open(&viewer, "/");
    colleague.open(&url);
    colleague.wait_for_text(".details h2", "charge");
    assert_eq!(state(&colleague), before);
    assert_eq!(colleague.url(), url);
    no_complaints(&browser);
    no_complaints(&colleague);
}

#[test]
fn every_field_of_the_search_counts() {
    let viewer = ViewerProcess::start();
    let (failed, _) = told();
    viewer.send_and_wait(&failed);
    let mut good = TraceBuilder::new(8);
    good.span("shop", "refund", None, 0.0, 10.0);
    good.attributes(&[("card", "declined"), ("till", "2")]);
    viewer.send_and_wait(&good);
    let browser = open(&viewer, "/search");
    browser.wait_for_text(".results-head .total", "2 traces");
    let find = |title: &str| {
        browser.click_text("button", "Find traces");
        browser.wait_for_text(".results-head .total", "1 trace");
        browser.wait_for_text(".result .title", title);
        let url = browser.url();
        browser.click_text(".form a", "Clear");
        browser.wait_for_text(".results-head .total", "2 traces");
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
    browser.wait_for_url("start=");
    browser.wait_for_text("[name=lookback] option:checked", "Custom range");
    no_complaints(&browser);
}

#[test]
fn the_keyboard_is_enough() {
    let viewer = ViewerProcess::start();
    let (told, _) = told();
    viewer.send_and_wait(&told);
    let browser = open(&viewer, "/search");
    browser.wait_until_visible(".result");
    browser.press("j\u{e007}");
    browser.wait_for_url(told.id());
    browser.wait_until_visible(".row");
    browser.press("?");
    browser.wait_for_text("dialog[open]", "Collapse one level");
    browser.screenshot("keyboard");
    browser.press("?");
    browser.wait_until_gone("dialog[open]");
    browser.press("jj");
    browser.wait_for_text(".details h2", "load cart");
    // The sheet gets the key, not what lies behind it.
    browser.press("?");
    browser.wait_until_visible("dialog[open]");
    browser.press("\u{e00c}");
    browser.wait_until_gone("dialog[open]");
    browser.wait_for_text(".details:not([hidden]) h2", "load cart");
    browser.press("p");
    wait_until("a level is closed", || browser.count(".row:not(.head)") == 3);
    browser.press("[");
    wait_until("everything is open", || browser.count(".row:not(.head)") == 4);
    // The next error.
    browser.press("n");
    browser.wait_for_text(".details h2", "charge");
    browser.press("\u{e00c}");
    browser.wait_until_gone(".details:not([hidden])");
    browser.press("/cart");
    browser.wait_for_text(".found-count", "2");
    assert_eq!(browser.count(".row.match"), 2);
    browser.press("\u{e00c}");
    browser.press("d\u{e013}");
    browser.wait_for_url("from=");
    browser.press("0");
    wait_until("the address has no range", || !browser.url().contains("from="));
    browser.press("go");
    browser.wait_for_url("/objects");
    no_complaints(&browser);
}

#[test]
fn a_trace_is_copied_exported_and_imported() {
    let viewer = ViewerProcess::start();
    let (told, _) = told();
    viewer.send_and_wait(&told);
    let browser = open(&viewer, &format!("/trace/{}", told.id()));
    browser.allow_clipboard();
    browser.wait_until_visible(".row");
    let copied = |what: &str| {
        browser.click_text(".trace-tools .menu summary", "Copy");
        browser.click_text(".trace-tools .menu-list button", what);
        browser.wait_for_text(".toast", "copied");
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
    let other = ViewerProcess::start();
    browser.open(&other.url("/search"));
    browser.click("button[aria-label='Import OTLP JSON']");
    browser.choose_file("input[type=file]", &file);
    browser.wait_for_url(&format!("/trace/{}", told.id()));
    browser.wait_for_text(".row .operation", "charge");
    // One that is none of that.
    fs::write(&file, "{\"resourceSpans\": 7}").unwrap();
    browser.click("button[aria-label='Import OTLP JSON']");
    browser.choose_file("input[type=file]", &file);
    browser.wait_for_text(".toast.bad", "Failed to import trace.json");
    let complaints = browser.take_console_errors();
    assert!(complaints.iter().all(|complaint| complaint.contains("400")), "{complaints:?}");
}

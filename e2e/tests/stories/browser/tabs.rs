//! Somebody has many tabs and windows of the page open, and goes back and forth. A browser has six connections
//! to a host for all of them.

use kubewake_e2e::{Browser, ViewerProcess, viewer::TraceBuilder};
use serde_json::json;

use super::{no_complaints, open};

/// More than a browser has connections.
const MANY: usize = 8;

/// A viewer with one trace.
fn viewer() -> (ViewerProcess, TraceBuilder) {
    let viewer = ViewerProcess::start();
    let mut told = TraceBuilder::new(1);
    told.span("shop", "checkout", None, 0.0, 5.0);
    viewer.send_and_wait(&told);
    (viewer, told)
}

/// From the search to a trace, which stays open.
fn look(browser: &Browser, viewer: &ViewerProcess) {
    browser.open(&viewer.url("/search"));
    browser.wait_for_text(".result .title", "checkout");
    browser.click(".result");
    browser.wait_for_text(".row .operation", "checkout");
    no_complaints(browser);
}

#[test]
fn the_tab_in_front_is_live_however_many_there_are() {
    let (viewer, told) = viewer();
    let browser = open(&viewer, "/search");
    for _ in 0..MANY {
        look(&browser, &viewer);
        browser.open_tab();
    }
    // Pages that were left and can be gone back to hold nothing either.
    for _ in 0..MANY {
        browser.open(&viewer.url("/objects"));
        browser.open(&viewer.url(&format!("/trace/{}", told.id())));
        browser.wait_for_text(".row .operation", "checkout");
    }
    browser.back();
    browser.back();
    browser.wait_for_text(".row .operation", "checkout");
    browser.open(&viewer.url("/search"));
    browser.wait_for_text(".live.on", "Live");

    // What comes while nobody looks is there when somebody does again.
    let hide = "Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true});
                window.away = arguments[0];
                document.dispatchEvent(new Event('visibilitychange'));";
    browser.script(hide, &[true.into()]);
    let mut later = TraceBuilder::new(2);
    later.span("shop", "refund", None, 0.0, 5.0);
    viewer.send_and_wait(&later);
    assert_eq!(browser.count(".result"), 1);
    browser.script(hide, &[false.into()]);
    browser.wait_for_text(".result .title", "refund");
    no_complaints(&browser);
}

#[test]
fn windows_side_by_side_all_work_and_all_follow() {
    let (viewer, _) = viewer();
    let browser = open(&viewer, "/search");
    for _ in 0..MANY {
        look(&browser, &viewer);
        browser.open_window_beside();
    }
    browser.open(&viewer.url("/search"));
    browser.wait_for_text(".result .title", "checkout");
    // There is no stream for this one: it looks again and again.
    browser.wait_for_text(".live.on", "Live");
    let places = "return navigator.locks.query().then(({held, pending}) => [held.length, pending.length > 0])";
    assert_eq!(browser.script(places, &[]), json!([4, true]));
    let mut later = TraceBuilder::new(2);
    later.span("shop", "refund", None, 0.0, 5.0);
    viewer.send_and_wait(&later);
    browser.wait_for_text(".result .title", "refund");
    browser.wait_for_text(".store", "2 traces");
    browser.close_others();
    let mut last = TraceBuilder::new(3);
    last.span("shop", "return", None, 0.0, 5.0);
    viewer.send_and_wait(&last);
    browser.wait_for_text(".result .title", "return");
    no_complaints(&browser);
}

//! Somebody has many tabs of the page open, and goes back and forth.
//!
//! A browser has six connections to a host for all of them. The tabs of a headless Chromium are all in sight, as windows side by side are.

use kubewake_e2e::{Viewer, viewer::Told};

use super::{no_complaints, open};

#[test]
fn every_one_of_many_tabs_works_and_the_one_in_sight_is_live() {
    let viewer = Viewer::start();
    let mut told = Told::new(1);
    told.span("shop", "checkout", None, 0.0, 5.0);
    viewer.take(&told);
    let browser = open(&viewer, "/search");
    let hide = "Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true});
                window.away = arguments[0];
                document.dispatchEvent(new Event('visibilitychange'));";
    for tab in 0..8 {
        if tab > 0 {
            browser.open_tab();
        }
        browser.open(&viewer.url("/search"));
        browser.await_text(".result .title", "checkout");
        browser.click(".result");
        browser.await_text(".row .operation", "checkout");
        no_complaints(&browser);
    }
    // The last one has no stream of its own: the others have them all. Pages that were left do not keep theirs.
    for _ in 0..8 {
        browser.open(&viewer.url("/objects"));
        browser.open(&viewer.url(&format!("/trace/{}", told.id())));
        browser.await_text(".row .operation", "checkout");
    }
    browser.back();
    browser.back();
    browser.await_text(".row .operation", "checkout");
    browser.close_others();
    browser.open(&viewer.url("/search"));
    browser.await_text(".live.on", "Live");

    // Nobody looks: what comes meanwhile is there when somebody does again.
    browser.script(hide, &[true.into()]);
    let mut later = Told::new(2);
    later.span("shop", "refund", None, 0.0, 5.0);
    viewer.take(&later);
    assert_eq!(browser.count(".result"), 1);
    browser.script(hide, &[false.into()]);
    browser.await_text(".result .title", "refund");
    no_complaints(&browser);
}

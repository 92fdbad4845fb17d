//! A trace of ten thousand spans.

use kubewake_e2e::{Browser, ViewerProcess, viewer::TraceBuilder, wait_until};
use serde_json::json;

use super::{no_complaints, open};

const SPANS: usize = 10_000;
/// What is on the screen, and some beyond it. A window of any size has far fewer rows than a trace like this.
const MOST_ROWS: usize = 120;

fn large() -> (ViewerProcess, TraceBuilder) {
    let viewer = ViewerProcess::start();
    let mut told = TraceBuilder::new(1);
    let root = told.span("gateway", "checkout", None, 0.0, SPANS as f64);
    let mut parent = root.clone();
    for number in 1..SPANS {
        // Groups of a hundred, each with a parent of its own.
        let above = if number % 100 == 1 { &root } else { &parent };
        let id = told.span(
            ["cart", "stock", "mail"][number % 3],
            &format!("step {number}"),
            Some(above),
            number as f64,
            0.9,
        );
        if number % 100 == 1 {
            parent = id;
        }
    }
    viewer.send_and_wait(&told);
    (viewer, told)
}

fn rows(browser: &Browser) -> usize {
    browser.count(".waterfall .row")
}

#[test]
fn it_opens_scrolls_and_is_searched_with_few_rows_in_the_page() {
    let (viewer, told) = large();
    let browser = open(&viewer, &format!("/trace/{}", told.id()));
    browser.wait_for_text(".row .operation", "checkout");
    browser.wait_for_text(".trace-head .facts", "10 000");
    assert!(rows(&browser) < MOST_ROWS);
    browser.screenshot("large");
    // All the way down, in steps: rows come and go.
    for share in [0.1, 0.35, 0.8, 1.0] {
        browser.script(
            "const s = document.querySelector('.scroll'); s.scrollTop = s.scrollHeight * arguments[0]",
            &[json!(share)],
        );
        let last = (share * SPANS as f64) as usize;
        wait_until("the rows at the scroll position are rendered", || {
            let texts = browser.texts(".row .operation");
            texts
                .iter()
                .filter_map(|text| text.strip_prefix("step ")?.parse().ok())
                .any(|number: usize| number.abs_diff(last) < 150)
        });
        assert!(rows(&browser) < MOST_ROWS, "at {share}");
    }
    // A span in the middle, by its name; what is around it fades.
    browser.type_into(".finder input", "step 5432");
    browser.wait_for_text(".found-count", "1");
    browser.press("\u{e007}");
    browser.wait_for_text(".details h2", "step 5432");
    browser.wait_until_visible(".row.match.selected");
    // Everything closed is one row.
    browser.click_text(".trace-tools button", "Collapse all");
    wait_until("only the root is left", || rows(&browser) == 2);
    no_complaints(&browser);
}

//! A newcomer looks at the page of a running `up`.

use kubewake_e2e::{
    Browser,
    browser::{ColorScheme, DESKTOP_WINDOW_SIZE, PHONE_WINDOW_SIZE},
    up_process::{HomeDir, link_in, trace_in},
};

#[test]
fn the_trace_of_the_sample_is_found_opened_and_followed() {
    let home = HomeDir::default();
    let up = home.start(&[]);
    let first = link_in(up.screen()).to_owned();
    let again = up.run_command(&home, &["demo", "head"]);
    let second = link_in(&again).to_owned();
    let page = |path: &str| format!("http://{}{path}", up.page());
    let operation = "/api/v1/search?operation=GET+%2Fapis%2Ftelemetry.kubewake.io%2Fv1alpha1%2Fmetricpipelines";
    let reads = || up.get(operation)["matched"].clone();
    let before = reads();

    let browser = Browser::start(DESKTOP_WINDOW_SIZE);
    browser.set_color_scheme(ColorScheme::Light);
    // What the API server did inside of the operator's requests is folded: docs/images/trace.png is made of this.
    let spans = up.spans(&first);
    let requests =
        spans.from_service("head-operator").filter(|span| span.kind == "client").map(|span| span.id.span.as_str());
    browser.open(&format!("{first}?collapsed={}", requests.collect::<Vec<_>>().join(",")));
    browser.wait_for_text(".row .operation", "converge Head");
    browser.screenshot("up-trace");

    // By its object, in the change that came last.
    browser.open(&page("/search?kind=Head&namespace=default&name=sample"));
    browser.wait_for_text(".results-head .total", "2 traces");
    browser.click(&format!(".result[data-trace='{}']", trace_in(&second)));
    browser.wait_for_url(&format!("/trace/{}", trace_in(&second)));
    browser.click_text(".row", "stamp Head");
    browser.wait_for_text(".details h2", "stamp Head");
    // And to the change before.
    browser.click(".details .links a");
    browser.wait_for_url(&format!("/trace/{}?span=", trace_in(&first)));

    // Each object below what it belongs to, down to the pods, of which only the cluster knows; with how long it
    // took to converge.
    browser.open(&page("/objects"));
    for (level, kind) in [(1, "Head"), (2, "ChildA"), (3, "Deployment"), (4, "Pod")] {
        browser.wait_for_text(&format!(".object-list [aria-level='{level}'] a"), kind);
    }
    browser.screenshot("up-objects");
    browser.click(".object-list a[aria-label^='The trace of Head sample']");
    browser.wait_for_text(".details h2", "converge Head");
    browser.back();
    browser.click_text(".object-list a", "Head");
    browser.wait_for_url("/objects/Head/default/sample");
    for row in ["Head sample", "ChildA", "Deployment", "Pod"] {
        browser.wait_for_text(".object-row", row);
    }
    browser.screenshot("up-object");
    // The way that its spans took.
    browser.open(&page("/pipelines"));
    browser.wait_for_text(".pipeline h2", "TracePipeline default");
    browser.wait_for_text(".pipeline .pill", "Ready");
    for chart in ["Received", "Sent", "Dropped", "Buffer"] {
        browser.wait_for_text(".pipeline .chart figcaption", chart);
    }
    browser.wait_until_visible(".pipeline .chart .stroke");
    browser.screenshot("up-pipelines");
    // What the page asks of the cluster meanwhile is nobody's trace. That of a change, which came after it, is there.
    up.run_command(&home, &["demo", "head"]);
    let asked = format!("/api/v1/search?attr=user-agent%3Dkubewake-viewer%2F{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(up.get(&asked)["matched"], 0, "{}", up.get(&asked));
    assert_eq!(reads(), before);
    browser.set_color_scheme(ColorScheme::Dark);
    browser.resize(PHONE_WINDOW_SIZE);
    browser.open(&second);
    browser.click_text(".row", "converge Head");
    browser.wait_for_text(".details h2", "converge Head");
    browser.screenshot("up-trace-phone-dark");
    assert_eq!(browser.take_console_errors(), Vec::<String>::new());
    up.stop_with("TERM");
}

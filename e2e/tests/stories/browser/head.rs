//! An operator's author looks for what became of an object.

use kubewake_e2e::{
    Browser, ViewerProcess,
    browser::{ColorScheme, PHONE_WINDOW_SIZE},
    viewer::TraceBuilder,
};
use serde_json::json;

use super::{no_complaints, open};

/// One change of a Head, as its operator tells it. Its stamp has a link to the one before. Gives the trace and
/// the stamp.
fn change(generation: u64, before: Option<(&str, &str)>) -> (TraceBuilder, String) {
    let mut told = TraceBuilder::new(generation);
    let root =
        told.span("apiserver", "POST /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/heads", None, 0.0, 40.0);
    let stamp = told.span("kubewake-webhook", "stamp Head", Some(&root), 8.0, 10.0);
    told.object("Head", "sample", generation);
    let links: Vec<_> = before.iter().map(|(trace, span)| json!({"traceId": trace, "spanId": span})).collect();
    told.with_fields(json!({"links": links}));
    told.span("head-operator", "converge Head", Some(&stamp), 18.0, 3000.0);
    told.object("Head", "sample", generation).with_fields(json!({"status": {"code": 1}}));
    let first = told.span("head-operator", "reconcile Head", Some(&stamp), 90.0, 60.0);
    told.object("Head", "sample", generation).with_fields(json!({"kind": 5}));
    let apply = told.span("head-operator", "apply ChildA", Some(&first), 100.0, 30.0);
    told.object("ChildA", "web", generation).with_fields(json!({"kind": 4}));
    told.span("head-operator", "converge ChildA", Some(&apply), 130.0, 2300.0);
    told.object("ChildA", "web", generation).with_fields(json!({"status": {"code": 1}}));
    let child = told.span("head-operator", "reconcile ChildA", Some(&apply), 150.0, 80.0);
    told.object("ChildA", "web", generation).with_fields(json!({"kind": 5}));
    told.span("head-operator", "apply Deployment", Some(&child), 160.0, 40.0);
    told.object("Deployment", "web", generation).with_fields(json!({"kind": 4}));
    told.span("head-operator", "reconcile ChildA", Some(&apply), 2350.0, 90.0);
    told.object("ChildA", "web", generation).with_fields(json!({"kind": 5}));
    told.span("head-operator", "reconcile Head", Some(&stamp), 2940.0, 80.0);
    told.object("Head", "sample", generation).with_fields(json!({"kind": 5}));
    (told, stamp)
}

/// Two changes of the same Head.
fn viewer() -> (ViewerProcess, TraceBuilder, TraceBuilder) {
    let viewer = ViewerProcess::start();
    let (first, stamp) = change(1, None);
    let (second, _) = change(2, Some((first.id(), &stamp)));
    viewer.send_and_wait(&first);
    viewer.send_and_wait(&second);
    (viewer, first, second)
}

fn find_by_object(browser: &Browser) {
    browser.type_into("input[name=kind]", "Head");
    browser.type_into("input[name=namespace]", "demo");
    browser.type_into("input[name=name]", "sample");
    browser.click_text("button", "Find traces");
    browser.wait_for_url("kind=Head");
    browser.wait_for_text(".results-head .total", "2 traces");
}

#[test]
fn the_trace_of_an_object_is_found_opened_and_followed() {
    let (viewer, first, second) = viewer();
    let browser = open(&viewer, "/");
    find_by_object(&browser);
    browser.screenshot("search");
    browser.click(&format!(".result[data-trace='{}']", second.id()));
    browser.wait_for_url(&format!("/trace/{}", second.id()));
    browser.wait_for_text(".row .operation", "converge Head");
    // The waiting is the story: from the first reconcile of the child until the Deployment was ready.
    browser.wait_for_text(".row .gap.wait", "2.12 s");
    assert!(browser.count(".row .path") > 3, "the critical path is drawn");
    browser.screenshot("trace");

    browser.click_text(".row", "stamp Head");
    browser.wait_for_text(".details h2", "stamp Head");
    browser.wait_for_text(".details .attributes", "k8s.object.kind");
    browser.screenshot("trace-span");
    // To the change before, which knows that it was followed; and back.
    browser.click(".details .links a");
    browser.wait_for_url(&format!("/trace/{}?span=", first.id()));
    browser.wait_for_text(".details .section", "Linked from");
    browser.click(".details .links a");
    browser.wait_for_url(&format!("/trace/{}?span=", second.id()));
    no_complaints(&browser);
}

#[test]
fn the_object_view_leads_from_change_to_change_into_traces() {
    let (viewer, first, second) = viewer();
    let browser = open(&viewer, "/objects");
    browser.click_text(".object-list a", "Head");
    browser.wait_for_url("/objects/Head/demo/sample");
    for row in ["Head sample", "ChildA web", "Deployment web"] {
        browser.wait_for_text(".object-row", row);
    }
    assert!(browser.texts(".change").iter().any(|change| change.contains("Generation 2")));
    browser.screenshot("object");
    browser.click_text(".change", "Generation 1");
    browser.wait_for_url(first.id());
    browser.click_text(".change", "Generation 2");
    browser.wait_for_url(second.id());
    browser.click(".object-row .generation");
    browser.wait_for_url(&format!("/trace/{}?span=", second.id()));
    browser.wait_for_text(".details h2", "converge Head");
    // And back to the object of another span.
    browser.click_text(".row", "apply ChildA");
    browser.click(".details .object-card");
    browser.wait_for_url("/objects/ChildA/demo/web");
    browser.wait_for_text(".crumbs", "Head sample");
    no_complaints(&browser);
}

#[test]
fn names_of_objects_have_room_on_a_telephone_however_deep_they_are() {
    let viewer = ViewerProcess::start();
    let mut told = TraceBuilder::new(1);
    let mut above = None;
    for depth in 0..14 {
        let kind = format!("Kind{depth}");
        let name = format!("deep-object-with-a-long-name-{depth}");
        let at = f64::from(depth);
        let apply = told.span("operator", &format!("apply {kind}"), above.as_deref(), at, 50.0);
        told.object(&kind, &name, 1).with_fields(json!({"kind": 4}));
        told.span("operator", &format!("converge {kind}"), Some(&apply), at, 50.0);
        told.object(&kind, &name, 1).with_fields(json!({"status": {"code": 1}}));
        above = Some(told.span("operator", &format!("reconcile {kind}"), Some(&apply), at, 50.0));
        told.object(&kind, &name, 1).with_fields(json!({"kind": 5}));
    }
    viewer.send_and_wait(&told);
    let browser = open(&viewer, "/objects");
    browser.wait_for_text(".object-list [aria-level='14']", "deep-object-with-a-long-name-13");
    for size in [PHONE_WINDOW_SIZE, (700, 844), (900, 844)] {
        browser.resize(size);
        assert_eq!(browser.script("return document.documentElement.scrollWidth <= innerWidth", &[]), true, "{size:?}");
        let lines = "return Math.max(...[...document.querySelectorAll('.object-list td:first-child a span')].map(e => e.getClientRects()[0].height / parseFloat(getComputedStyle(e).lineHeight)))";
        let lines = browser.script(lines, &[]).as_f64().unwrap();
        assert!(lines < 4.5, "a name takes {lines} lines at {size:?}");
    }
    browser.resize(PHONE_WINDOW_SIZE);
    browser.script("document.querySelector('[aria-level=\"14\"]').scrollIntoView()", &[]);
    browser.screenshot("objects-phone");
    no_complaints(&browser);
}

#[test]
fn labels_of_changes_that_are_close_do_not_overlap() {
    let viewer = ViewerProcess::start();
    for (number, start) in [(1, 0.0), (2, 17_000.0), (3, 21_000.0), (4, 137_000.0), (5, 144_000.0)] {
        let mut told = TraceBuilder::new(number);
        // Traces of higher numbers begin later by a second.
        told.span("operator", "converge Head", None, start - 200_000.0 - 1000.0 * number as f64, 2000.0);
        told.object("Head", "sample", number);
        viewer.send_and_wait(&told);
    }
    let browser = open(&viewer, "/objects/Head/demo/sample?trace=all");
    browser.wait_until_visible(".generation .amount");
    assert_eq!(browser.count(".generation"), 5);
    let overlaps = "const boxes = [...document.querySelectorAll('.generation, .generation .amount')].map(e => [e, e.getBoundingClientRect()]);
        return boxes.flatMap(([a, x]) => boxes.filter(([b, y]) => a !== b && !a.contains(b) && !b.contains(a) && x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom && y.top < x.bottom).map(([b]) => a.textContent + ' / ' + b.textContent))";
    browser.screenshot("object-all");
    assert_eq!(browser.script(overlaps, &[]), json!([]));
    no_complaints(&browser);
}

#[test]
fn it_is_dark_when_the_system_is_and_works_on_a_telephone() {
    let (viewer, _, second) = viewer();
    let browser = open(&viewer, "/search");
    let background = || browser.script("return getComputedStyle(document.documentElement).backgroundColor", &[]);
    browser.wait_until_visible(".result");
    browser.set_color_scheme(ColorScheme::Light);
    let light = background();
    browser.set_color_scheme(ColorScheme::Dark);
    let dark = background();
    assert_ne!(light, dark);
    browser.screenshot("search-dark");
    // Who chooses is not overruled by the system, also on the next visit.
    browser.click("button.theme");
    assert_eq!(background(), light, "chosen: light");
    browser.reload();
    browser.wait_until_visible(".result");
    assert_eq!(background(), light);
    browser.click("button.theme");
    assert_eq!(background(), dark, "chosen: dark");
    browser.set_color_scheme(ColorScheme::Light);
    assert_eq!(background(), dark);

    browser.resize(PHONE_WINDOW_SIZE);
    browser.click("details.filters summary");
    find_by_object(&browser);
    browser.screenshot("search-phone");
    browser.click(&format!(".result[data-trace='{}']", second.id()));
    browser.click_text(".row", "converge Head");
    browser.wait_for_text(".details h2", "converge Head");
    browser.screenshot("trace-phone");
    let fits = "return document.documentElement.scrollWidth <= innerWidth";
    for path in ["/search", "/objects", "/objects/Head/demo/sample", "/pipelines", &format!("/trace/{}", second.id())] {
        browser.open(&viewer.url(path));
        browser.wait_until_visible("h1");
        assert_eq!(browser.script(fits, &[]), true, "{path} is wider than the window");
    }
    no_complaints(&browser);
}

#[test]
fn whoever_cannot_see_the_page_is_told_what_everything_is() {
    let (viewer, _, second) = viewer();
    let browser = open(&viewer, "/search");
    let nameless = "
        const name = e => e.ariaLabel || e.title || e.closest('label')?.textContent || e.textContent;
        return [...document.querySelectorAll('button, a, input, select, summary, [role=treegrid], [role=img], [role=group]')]
            .filter(e => e.checkVisibility() && !name(e)?.trim()).map(e => e.outerHTML.slice(0, 200))";
    let trace = format!("/trace/{}", second.id());
    for path in ["/search", &trace, "/objects", "/objects/Head/demo/sample"] {
        browser.open(&viewer.url(path));
        browser.wait_until_visible("h1, .offscreen");
        browser.wait_until_gone(".loading");
        assert_eq!(browser.script(nameless, &[]), json!([]), "{path}");
        // One main heading, one main part, and what is focused can be seen.
        assert_eq!((browser.count("h1"), browser.count("main")), (1, 1), "{path}");
    }
    // The waterfall is a tree grid: its focus is on a row that says how deep it is, and whether it is open.
    browser.open(&viewer.url(&trace));
    browser.wait_until_visible(".row");
    browser.script("document.querySelector('[role=treegrid]').focus()", &[]);
    let row = || {
        browser.script(
            "const row = document.getElementById(document.querySelector('[role=treegrid]').getAttribute('aria-activedescendant'));
             return row && [row.ariaLevel, row.ariaExpanded, row.ariaSelected, row.querySelector('.operation').innerText]",
            &[],
        )
    };
    browser.press("\u{e015}\u{e015}");
    assert_eq!(row(), json!(["2", "true", "true", "stamp Head"]));
    browser.press("\u{e012}");
    assert_eq!(row(), json!(["2", "false", "true", "stamp Head"]));
    browser.press("\u{e014}\u{e014}");
    assert_eq!(row(), json!(["3", null, "true", "converge Head"]));
    no_complaints(&browser);
}

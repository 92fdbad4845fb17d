//! Somebody who has sent nothing yet.

use std::process::Command;

use kubewake_e2e::{ViewerProcess, viewer::TraceBuilder, wait_until};

use super::{no_complaints, open};

#[test]
fn the_command_that_an_empty_page_shows_brings_the_first_trace() {
    let viewer = ViewerProcess::start();
    let browser = open(&viewer, "/");
    let command = browser.text(".newcomer .command pre");
    assert!(command.contains(&viewer.http().to_string()), "{command}");
    browser.screenshot("empty");
    let sent = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    // It comes by itself.
    browser.wait_for_text(".result .title", "first try");
    no_complaints(&browser);
}

#[test]
fn new_traces_appear_and_wait_while_the_reader_pauses() {
    let viewer = ViewerProcess::start();
    let tell = |number: u64, name: &str| {
        let mut told = TraceBuilder::new(number);
        told.span("shop", name, None, 0.0, 5.0);
        viewer.send_and_wait(&told);
    };
    tell(1, "first");
    let browser = open(&viewer, "/search");
    browser.wait_for_text(".result .title", "first");
    browser.wait_until_visible(".live.on");
    tell(2, "second");
    browser.wait_for_text(".result .title", "second");
    browser.click("button.pause");
    tell(3, "third");
    browser.wait_for_text(".live", "1 new");
    assert!(!browser.texts(".result .title").iter().any(|title| title.contains("third")));
    browser.click("button.pause");
    browser.wait_for_text(".result .title", "third");
    wait_until("the newest is first", || browser.texts(".result .title")[0].contains("third"));
    no_complaints(&browser);
}

#[test]
fn a_trace_that_goes_on_grows_under_the_eyes_of_its_reader() {
    let viewer = ViewerProcess::start();
    let mut told = TraceBuilder::new(1);
    let root = told.span("operator", "reconcile", None, 0.0, 5.0);
    viewer.send_and_wait(&told);
    let browser = open(&viewer, &format!("/trace/{}", told.id()));
    browser.click_text(".row", "reconcile");
    browser.wait_for_text(".details h2", "reconcile");
    browser.click(".finder input");
    browser.press("app");
    told.span("operator", "apply", Some(&root), 3000.0, 5.0);
    viewer.send_and_wait(&told);
    browser.wait_for_text(".row.match .operation", "apply");
    // What was selected still is, and the next letter goes where the last one went.
    assert_eq!(browser.text(".details h2"), "reconcile");
    browser.press("ly");
    browser.wait_for_url("q=apply");
    browser.wait_for_text(".row .gap.wait", "3 s");
    no_complaints(&browser);
}

#[test]
fn pages_without_a_cluster_or_with_a_wrong_address_say_what_to_do() {
    let viewer = ViewerProcess::start();
    let browser = open(&viewer, "/pipelines");
    browser.wait_for_text(".empty", "kubewake viewer --kubeconfig");
    browser.open(&viewer.url("/objects"));
    browser.wait_for_text(".empty", "kubewake demo head");
    browser.open(&viewer.url("/search/nowhere"));
    browser.wait_for_text(".empty", "Page not found");
    no_complaints(&browser);
    browser.open(&viewer.url("/trace/0123456789abcdef0123456789abcdef"));
    browser.wait_for_text(".empty", "not in the store");
    // A browser writes down that a page was not found, whoever asked.
    let complaints = browser.take_console_errors();
    assert!(complaints.iter().all(|complaint| complaint.contains("404")), "{complaints:?}");
}

//! Somebody looks at traces in a browser.
//!
//! The page is a real one of `kubewake viewer`, fed over OTLP; Chromium is driven as a person would, and must
//! not complain of anything. Pictures are kept in `target/screenshots`.

mod head;
mod hostile;
mod large;
mod newcomer;
mod states;
mod tabs;

use kubewake_e2e::{Browser, ViewerProcess, browser::DESKTOP_WINDOW_SIZE};

/// A browser that has opened a page, and a viewer behind it.
fn open(viewer: &ViewerProcess, path: &str) -> Browser {
    let browser = Browser::start(DESKTOP_WINDOW_SIZE);
    browser.open(&viewer.url(path));
    browser
}

/// Whatever was done, the page must not have stumbled.
fn no_complaints(browser: &Browser) {
    assert_eq!(browser.take_console_errors(), Vec::<String>::new());
}

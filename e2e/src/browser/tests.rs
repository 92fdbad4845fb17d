//! The actions and waits that browser stories rely on.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use super::*;

const PAGE: &str = "<!doctype html><title>t</title><link rel=icon href='data:,'><label>Name <input id=name></label>\
    <button id=go>Go</button><p id=said></p>\
    <script>go.onclick = () => { setTimeout(() => { said.textContent = `${name_.value} ${innerWidth} ${matchMedia('(prefers-color-scheme: dark)').matches}` }, 50) };\
    const name_ = document.getElementById('name'); console.error('a complaint')</script>";

/// A server that responds to every request with the page.
fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length:";
            let _ = write!(stream, "{head} {}\r\n\r\n{PAGE}", PAGE.len());
        }
    });
    format!("http://{address}/")
}

#[test]
fn it_types_clicks_reads_and_takes_pictures() {
    let browser = Browser::start(PHONE_WINDOW_SIZE);
    browser.set_color_scheme(ColorScheme::Dark);
    let url = page();
    browser.open(&url);
    browser.type_into("#name", "wake");
    browser.click_text("button", "Go");
    browser.wait_for_text("#said", "wake 390 true");
    assert_eq!(browser.url(), url);
    assert_eq!(browser.take_console_errors().len(), 1);
    assert_eq!(browser.take_console_errors().len(), 0, "they are told once");
    browser.click("#name");
    browser.press("!\u{e007}");
    assert_eq!(browser.script("return name_.value", &[]), "wake!");
    assert!(fs::read(browser.screenshot("browser")).unwrap().starts_with(b"\x89PNG"));
}

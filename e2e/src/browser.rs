//! A headless Chromium, driven over the WebDriver protocol by `chromedriver`.
//!
//! *Guaranteed.* The browser has a temporary profile, and ends when it is dropped. Methods wait for the
//! elements that they need, so that a test lists a person's actions: find, click, type, read. Everything that
//! the page writes to the console is recorded. *Not done.* Other browsers. `$KUBEWAKE_CHROMIUM` and
//! `$KUBEWAKE_CHROMEDRIVER` name the programs, by default those in the path.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    http::Http1Connection,
    process::{ChildProcess, workspace},
    wait::{wait_for, wait_for_ok, wait_until},
};

/// Window size of a desktop computer.
pub const DESKTOP_WINDOW_SIZE: (u32, u32) = (1440, 900);
/// Window size of a telephone.
pub const PHONE_WINDOW_SIZE: (u32, u32) = (390, 844);

/// Tests run as root, must not reach any network, and need the same rendering everywhere.
const CHROMIUM_FLAGS: [&str; 13] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
];
/// The key of an element's id in the protocol.
const ELEMENT_ID_KEY: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Value of the media feature `prefers-color-scheme`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorScheme {
    Light,
    Dark,
}

pub struct Browser {
    // Before the profile: the driver must end before its folder is removed.
    driver: ChildProcess,
    address: SocketAddr,
    session: String,
    profile: TempDir,
}

impl Browser {
    /// Starts a browser with a window of this size, in CSS pixels.
    pub fn start(size: (u32, u32)) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let program = std::env::var_os("KUBEWAKE_CHROMEDRIVER").unwrap_or_else(|| "chromedriver".into());
        let mut command = Command::new(program);
        let driver =
            ChildProcess::start(command.arg("--port=0").env("TMPDIR", profile.path()).env("HOME", profile.path()));
        let port: u16 = wait_for("chromedriver prints its port", || {
            let said = driver.stdout();
            said.split_once("started successfully on port ")?.1.split_once('.')?.0.parse().ok()
        });
        let mut browser = Self { driver, address: ([127, 0, 0, 1], port).into(), session: String::new(), profile };
        browser.open_window();
        browser.resize(size);
        browser
    }

    fn open_window(&mut self) {
        let folder = self.profile.path().join("profile");
        let args: Vec<String> = CHROMIUM_FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
        let args = [args, vec![format!("--user-data-dir={}", folder.display())]].concat();
        let program = std::env::var("KUBEWAKE_CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned());
        let wanted = json!({
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": program, "args": args},
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        let body = json!({"capabilities": {"alwaysMatch": wanted}});
        let session = self
            .call_driver("POST", "/session", &body)
            .unwrap_or_else(|error| panic!("failed to open a window: {error}"));
        self.session = session["sessionId"].as_str().unwrap().to_owned();
    }

    /// Resizes the window. The page gets exactly this viewport, however small.
    pub fn resize(&self, (width, height): (u32, u32)) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Emulates the system's colour scheme.
    pub fn set_color_scheme(&self, scheme: ColorScheme) {
        let scheme = if scheme == ColorScheme::Dark { "dark" } else { "light" };
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Grants pages access to the clipboard.
    pub fn allow_clipboard(&self) {
        let permissions = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
        self.devtools("Browser.grantPermissions", &permissions);
    }

    /// Sends a command of the Chrome DevTools Protocol.
    pub fn devtools(&self, command: &str, params: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    /// Opens a page, and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// Opens a tab, and makes it the current one.
    pub fn open_tab(&self) {
        self.switch_to_new("tab");
    }

    /// Opens a window, and makes it the current one.
    pub fn open_window_beside(&self) {
        self.switch_to_new("window");
    }

    fn switch_to_new(&self, kind: &str) {
        let opened = self.post("/window/new", &json!({"type": kind}));
        self.post("/window", &json!({"handle": opened["handle"]}));
    }

    /// Closes all tabs and windows but the current one.
    pub fn close_others(&self) {
        let current = self.get("/window");
        for tab in self.get("/window/handles").as_array().into_iter().flatten().filter(|tab| **tab != current) {
            self.post("/window", &json!({"handle": tab}));
            let _ = self.call_driver("DELETE", &format!("/session/{}/window", self.session), &Value::Null);
        }
        self.post("/window", &json!({"handle": current}));
    }

    pub fn reload(&self) {
        self.post("/refresh", &json!({}));
    }

    pub fn back(&self) {
        self.post("/back", &json!({}));
    }

    pub fn url(&self) -> String {
        self.get("/url").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the address contains `part`.
    pub fn wait_for_url(&self, part: &str) {
        wait_for_ok(|| {
            let url = self.url();
            if url.contains(part) { Ok(()) } else { Err(format!("{part:?} in the address, which is {url}")) }
        });
    }

    /// Waits for the first visible element that a CSS selector finds, and clicks it.
    pub fn click(&self, selector: &str) {
        wait_for_ok(|| {
            let element = self.find_visible(selector)?;
            self.try_post(&format!("/element/{element}/click"), &json!({})).map(drop)
        });
    }

    /// Waits for the first visible element with this text, and clicks it.
    pub fn click_text(&self, selector: &str, text: &str) {
        let find = "return [...document.querySelectorAll(arguments[0])].find(e => e.checkVisibility() && e.textContent.includes(arguments[1]))";
        wait_for_ok(|| {
            let found = self.script(find, &[json!(selector), json!(text)]);
            let element = found[ELEMENT_ID_KEY].as_str().ok_or_else(|| format!("{selector} with the text {text:?}"))?;
            self.try_post(&format!("/element/{element}/click"), &json!({})).map(drop)
        });
    }

    /// Clears a field and types into it.
    pub fn type_into(&self, selector: &str, text: &str) {
        wait_for_ok(|| {
            let element = self.find_visible(selector)?;
            self.try_post(&format!("/element/{element}/clear"), &json!({}))?;
            self.try_post(&format!("/element/{element}/value"), &json!({"text": text})).map(drop)
        });
    }

    /// Chooses a file in a file input, which need not be visible.
    pub fn choose_file(&self, selector: &str, file: &Path) {
        let element = wait_for_ok(|| {
            let found = self.script("return document.querySelector(arguments[0])", &[json!(selector)]);
            found[ELEMENT_ID_KEY].as_str().map(str::to_owned).ok_or_else(|| format!("{selector} exists"))
        });
        self.post(&format!("/element/{element}/value"), &json!({"text": file.to_str().unwrap()}));
    }

    /// Presses keys in the focused element. Special keys are code points of the protocol, such as `\u{e007}`
    /// for Enter.
    pub fn press(&self, keys: &str) {
        let press = |key: char| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Drags with the mouse between two points of the window.
    pub fn drag(&self, from: (i32, i32), to: (i32, i32)) {
        let move_to = |(x, y): (i32, i32)| json!({"type": "pointerMove", "duration": 20, "x": x, "y": y});
        let actions = json!([
            move_to(from), {"type": "pointerDown", "button": 0}, move_to(to), {"type": "pointerUp", "button": 0},
        ]);
        self.post("/actions", &json!({"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]}));
    }

    /// Waits for the first visible element that a CSS selector finds, and returns its text.
    pub fn text(&self, selector: &str) -> String {
        let element = wait_for_ok(|| self.find_visible(selector));
        self.get(&format!("/element/{element}/text")).as_str().unwrap_or_default().to_owned()
    }

    /// The texts of all elements that a CSS selector finds now.
    pub fn texts(&self, selector: &str) -> Vec<String> {
        let all = "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)";
        let texts = self.script(all, &[json!(selector)]);
        texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// How many elements a CSS selector finds now.
    pub fn count(&self, selector: &str) -> usize {
        let count = self.script("return document.querySelectorAll(arguments[0]).length", &[json!(selector)]);
        count.as_u64().unwrap() as usize
    }

    /// Waits until a visible element is found.
    pub fn wait_until_visible(&self, selector: &str) {
        wait_for_ok(|| self.find_visible(selector));
    }

    /// Waits until no element is found.
    pub fn wait_until_gone(&self, selector: &str) {
        wait_until(&format!("{selector} is gone"), || self.count(selector) == 0);
    }

    /// Waits until the text of an element contains `part`.
    pub fn wait_for_text(&self, selector: &str, part: &str) {
        wait_for_ok(|| {
            let texts = self.texts(selector);
            let found = texts.iter().any(|text| text.contains(part));
            if found { Ok(()) } else { Err(format!("{part:?} in {selector}, which has {texts:?}")) }
        });
    }

    /// Runs a function body in the page, and returns its result. A promise is awaited.
    pub fn script(&self, body: &str, args: &[Value]) -> Value {
        self.post("/execute/sync", &json!({"script": body, "args": args}))
    }

    /// Saves a screenshot as `target/screenshots/NAME.png`, and returns its path.
    pub fn screenshot(&self, name: &str) -> PathBuf {
        let picture = BASE64_STANDARD.decode(self.get("/screenshot").as_str().unwrap()).unwrap();
        let folder = std::env::var_os("KUBEWAKE_SCREENSHOTS").map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| workspace().join("target/screenshots"));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}.png"));
        fs::write(&path, picture).unwrap();
        path
    }

    /// Errors and warnings in the console since the last call, with their sources.
    pub fn take_console_errors(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().cloned().unwrap_or_default();
        let is_bad = |entry: &&Value| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING"));
        entries.iter().filter(is_bad).map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The id of the first visible element.
    fn find_visible(&self, selector: &str) -> Result<String, String> {
        let find = "return [...document.querySelectorAll(arguments[0])].find(e => e.checkVisibility())";
        let found = self.script(find, &[json!(selector)]);
        let id = found[ELEMENT_ID_KEY].as_str().map(str::to_owned);
        id.ok_or_else(|| format!("{selector} is visible on {}", self.url()))
    }

    fn get(&self, path: &str) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.call_driver("GET", &path, &Value::Null).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.try_post(path, body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn try_post(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.call_driver("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// Sends a request of the protocol, and returns the value of its response.
    fn call_driver(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let json = [("content-type", "application/json")];
        let answer = Http1Connection::connect(self.address).request(method, path, &json, &body);
        let value = answer.json()["value"].take();
        if answer.status == 200 {
            return Ok(value);
        }
        Err(value["message"].as_str().unwrap_or_default().lines().next().unwrap_or_default().to_owned())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if thread::panicking() {
            // A screenshot explains a failure better than the message. Failing to take one must not hide the
            // failure.
            let name = thread::current().name().unwrap_or("test").replace("::", "-");
            let shot = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                (self.screenshot(&format!("failed-{name}")), self.url(), self.take_console_errors())
            }));
            if let Ok((picture, url, complaints)) = shot {
                eprintln!(
                    "--- the browser showed {url}, see {}; errors in the console: {complaints:#?}",
                    picture.display()
                );
            }
        }
        // Closes the session: killing the driver would leave the window behind.
        let _ = self.call_driver("DELETE", &format!("/session/{}", self.session), &Value::Null);
        self.driver.signal("TERM");
        self.driver.wait_for_exit();
    }
}

#[cfg(test)]
mod tests;

//! A browser with nobody in front of it: Chromium, driven over the WebDriver protocol by way of `chromedriver`.
//!
//! *Guarantees.* It has a profile of its own, which goes with it, and ends with the value that stands for it. What is looked for is
//! awaited, so that a test says what a person would: find, click, type, read. Everything that the page wrote to the console is kept.
//! *Not done.* It is Chromium only, and one window. `$KUBEWAKE_CHROMIUM` and `$KUBEWAKE_CHROMEDRIVER` are the programs, by default
//! those in the path.

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
    http::Connection,
    process::{Process, workspace},
    wait::{eventually, until, until_ok},
};

/// As large as the window of a person at a desk.
pub const DESKTOP: (u32, u32) = (1440, 900);
/// As large as a telephone.
pub const PHONE: (u32, u32) = (390, 844);

/// It runs as root in tests, reaches for nothing but the page, and looks the same everywhere.
const FLAGS: [&str; 13] = [
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
/// The name under which the protocol hides an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The colours that the system asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// A browser with one window.
pub struct Browser {
    // Before the profile: it is gone when that is removed.
    driver: Process,
    address: SocketAddr,
    session: String,
    profile: TempDir,
}

impl Browser {
    /// Starts one whose window has this size, in CSS pixels.
    pub fn start(size: (u32, u32)) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let program = std::env::var_os("KUBEWAKE_CHROMEDRIVER").unwrap_or_else(|| "chromedriver".into());
        let mut command = Command::new(program);
        let driver = Process::start(command.arg("--port=0").env("TMPDIR", profile.path()).env("HOME", profile.path()));
        let port: u16 = until("chromedriver says its port", || {
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
        let args: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
        let args = [args, vec![format!("--user-data-dir={}", folder.display())]].concat();
        let program = std::env::var("KUBEWAKE_CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned());
        let wanted = json!({
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": program, "args": args},
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        let body = json!({"capabilities": {"alwaysMatch": wanted}});
        let session = self.ask("POST", "/session", &body).unwrap_or_else(|error| panic!("no window: {error}"));
        self.session = session["sessionId"].as_str().unwrap().to_owned();
    }

    /// Gives the window another size. The page gets exactly this much, however small.
    pub fn resize(&self, (width, height): (u32, u32)) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// What the system's settings ask of pages.
    pub fn prefer(&self, scheme: Scheme) {
        let scheme = if scheme == Scheme::Dark { "dark" } else { "light" };
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Lets pages read and write the clipboard, as a person would allow it.
    pub fn allow_clipboard(&self) {
        let permissions = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
        self.devtools("Browser.grantPermissions", &permissions);
    }

    /// A command of Chromium's own protocol.
    pub fn devtools(&self, command: &str, params: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    /// Goes to a page, and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// Opens another tab in front of this one, where everything happens from now on.
    pub fn open_tab(&self) {
        self.open_another("tab");
    }

    /// Opens another window beside this one, where everything happens from now on.
    pub fn open_beside(&self) {
        self.open_another("window");
    }

    fn open_another(&self, kind: &str) {
        let opened = self.post("/window/new", &json!({"type": kind}));
        self.post("/window", &json!({"handle": opened["handle"]}));
    }

    /// Closes all tabs and windows but this one.
    pub fn close_others(&self) {
        let current = self.get("/window");
        for tab in self.get("/window/handles").as_array().into_iter().flatten().filter(|tab| **tab != current) {
            self.post("/window", &json!({"handle": tab}));
            let _ = self.ask("DELETE", &format!("/session/{}/window", self.session), &Value::Null);
        }
        self.post("/window", &json!({"handle": current}));
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.post("/refresh", &json!({}));
    }

    /// Goes back one page.
    pub fn back(&self) {
        self.post("/back", &json!({}));
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        self.get("/url").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the address has this in it.
    pub fn await_url(&self, part: &str) {
        until_ok(|| {
            let url = self.url();
            if url.contains(part) { Ok(()) } else { Err(format!("{part:?} in the address, which is {url}")) }
        });
    }

    /// Waits for the first element that a CSS selector finds and that can be seen, and clicks it.
    pub fn click(&self, selector: &str) {
        until_ok(|| {
            let element = self.seen(selector)?;
            self.try_post(&format!("/element/{element}/click"), &json!({})).map(drop)
        });
    }

    /// Waits for the first element that can be seen and has this text, and clicks it.
    pub fn click_text(&self, selector: &str, text: &str) {
        let find = "return [...document.querySelectorAll(arguments[0])].find(e => e.checkVisibility() && e.textContent.includes(arguments[1]))";
        until_ok(|| {
            let found = self.script(find, &[json!(selector), json!(text)]);
            let element = found[ELEMENT].as_str().ok_or_else(|| format!("{selector} with the text {text:?}"))?;
            self.try_post(&format!("/element/{element}/click"), &json!({})).map(drop)
        });
    }

    /// Clears a field and types into it.
    pub fn type_into(&self, selector: &str, text: &str) {
        until_ok(|| {
            let element = self.seen(selector)?;
            self.try_post(&format!("/element/{element}/clear"), &json!({}))?;
            self.try_post(&format!("/element/{element}/value"), &json!({"text": text})).map(drop)
        });
    }

    /// Chooses a file in a field for files, which need not be visible.
    pub fn choose_file(&self, selector: &str, file: &Path) {
        let element = until_ok(|| {
            let found = self.script("return document.querySelector(arguments[0])", &[json!(selector)]);
            found[ELEMENT].as_str().map(str::to_owned).ok_or_else(|| format!("{selector} is there"))
        });
        self.post(&format!("/element/{element}/value"), &json!({"text": file.to_str().unwrap()}));
    }

    /// Presses keys, wherever the focus is. Names of keys are those of the protocol, such as `\u{e007}` for Enter.
    pub fn press(&self, keys: &str) {
        let press = |key: char| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Drags with the mouse, between two points of the window.
    pub fn drag(&self, from: (i32, i32), to: (i32, i32)) {
        let move_to = |(x, y): (i32, i32)| json!({"type": "pointerMove", "duration": 20, "x": x, "y": y});
        let actions = json!([
            move_to(from), {"type": "pointerDown", "button": 0}, move_to(to), {"type": "pointerUp", "button": 0},
        ]);
        self.post("/actions", &json!({"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]}));
    }

    /// Waits for the first element that a CSS selector finds and that can be seen, and gives its text.
    pub fn text(&self, selector: &str) -> String {
        let element = until_ok(|| self.seen(selector));
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

    /// Waits until an element can be seen.
    pub fn await_seen(&self, selector: &str) {
        until_ok(|| self.seen(selector));
    }

    /// Waits until no element is found.
    pub fn await_gone(&self, selector: &str) {
        eventually(&format!("{selector} is gone"), || self.count(selector) == 0);
    }

    /// Waits until an element has this in its text.
    pub fn await_text(&self, selector: &str, part: &str) {
        until_ok(|| {
            let texts = self.texts(selector);
            let found = texts.iter().any(|text| text.contains(part));
            if found { Ok(()) } else { Err(format!("{part:?} in {selector}, which has {texts:?}")) }
        });
    }

    /// Runs the body of a function in the page, and gives what it returns. A promise is awaited.
    pub fn script(&self, body: &str, args: &[Value]) -> Value {
        self.post("/execute/sync", &json!({"script": body, "args": args}))
    }

    /// Keeps a picture of the window as `target/screenshots/NAME.png`, and gives its path.
    pub fn screenshot(&self, name: &str) -> PathBuf {
        let picture = BASE64_STANDARD.decode(self.get("/screenshot").as_str().unwrap()).unwrap();
        let folder = std::env::var_os("KUBEWAKE_SCREENSHOTS").map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| workspace().join("target/screenshots"));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}.png"));
        fs::write(&path, picture).unwrap();
        path
    }

    /// What the page and the browser complained of since the last look: errors and warnings, with where they come from.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().cloned().unwrap_or_default();
        let is_bad = |entry: &&Value| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING"));
        entries.iter().filter(is_bad).map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The id of the first element that can be seen.
    fn seen(&self, selector: &str) -> Result<String, String> {
        let find = "return [...document.querySelectorAll(arguments[0])].find(e => e.checkVisibility())";
        let found = self.script(find, &[json!(selector)]);
        let id = found[ELEMENT].as_str().map(str::to_owned);
        id.ok_or_else(|| format!("{selector} can be seen on {}", self.url()))
    }

    fn get(&self, path: &str) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.ask("GET", &path, &Value::Null).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.try_post(path, body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn try_post(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.ask("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// One request of the protocol, and the value of its answer.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let json = [("content-type", "application/json")];
        let answer = Connection::to(self.address).request(method, path, &json, &body);
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
            // A picture of what was on the screen says more than the message; whether there is one is not for a failed test to say.
            let name = thread::current().name().unwrap_or("test").replace("::", "-");
            let shot = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                (self.screenshot(&format!("failed-{name}")), self.url(), self.complaints())
            }));
            if let Ok((picture, url, complaints)) = shot {
                eprintln!("--- the browser was on {url}, see {}; its console: {complaints:#?}", picture.display());
            }
        }
        // Its window goes with it, which killing the driver would leave behind.
        let _ = self.ask("DELETE", &format!("/session/{}", self.session), &Value::Null);
        self.driver.signal("TERM");
        self.driver.wait();
    }
}

#[cfg(test)]
mod tests;
